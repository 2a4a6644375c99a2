// The `mpi` backend: the MPI library's own collectives.
#include <mpi.h>

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/mpi/mpi_block_types.h"
#include "tandem/comm/backends/mpi/mpi_communicator.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace tandem::comm::detail {

namespace {

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f32:
      return MPI_FLOAT;
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    default:
      fail("mpi: no reduction of {}", name_of(dtype));
  }
}

MPI_Op operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::product:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    default:
      return MPI_SUM;
  }
}

/// Counts and offsets of blocks as MPI takes them, in multiples of `unit` elements.
struct IntCounts {
  IntCounts(const std::vector<std::int64_t>& wide, std::int64_t unit) {
    std::int64_t at = 0;
    for (const std::int64_t count : wide) {
      counts.push_back(static_cast<int>(count * unit));
      offsets.push_back(static_cast<int>(at));
      at += count * unit;
    }
  }

  std::vector<int> counts, offsets;
};

/// All that calls of MPI under way may read and write, and the communicator that they are of.
struct Pending {
  Collective collective;
  std::shared_ptr<const Communicator> communicator;
  std::vector<MPI_Request> requests;
  std::vector<IntCounts> counts;
  std::vector<BlockTypes> types;

  MPI_Request* new_request() { return &requests.emplace_back(MPI_REQUEST_NULL); }
};

class MpiWork final : public Work {
 public:
  /// `divisor`: of the elements at the output, `count` of them; 1 for none.
  MpiWork(std::unique_ptr<Pending> pending, std::int64_t count, int divisor)
      : pending_(std::move(pending)), count_(count), divisor_(divisor) {}
  ~MpiWork() override {
    // MPI cannot cancel a collective: given up by an error, it may still use all this until the process ends.
    if (!done_ && !pending_->requests.empty()) keep_for_ever(std::move(pending_));
  }
  MpiWork(const MpiWork&) = delete;
  MpiWork& operator=(const MpiWork&) = delete;

  bool poll() override {
    if (done_) return true;
    auto& requests = pending_->requests;
    int complete = 0;
    TANDEM_CHECK_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete) finish();
    return done_;
  }
  void wait() override {
    if (done_) return;
    auto& requests = pending_->requests;
    TANDEM_CHECK_MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    finish();
  }

 private:
  void finish() {
    divide(pending_->collective.output, count_, pending_->collective.dtype, divisor_);
    done_ = true;
  }

  std::unique_ptr<Pending> pending_;
  std::int64_t count_;
  int divisor_;
  bool done_ = false;
};

Place find_place(MPI_Comm communicator) {
  Place place;
  TANDEM_CHECK_MPI(MPI_Comm_rank(communicator, &place.rank));
  TANDEM_CHECK_MPI(MPI_Comm_size(communicator, &place.size));
  MPI_Comm host = MPI_COMM_NULL;
  TANDEM_CHECK_MPI(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, place.rank, MPI_INFO_NULL, &host));
  const Communicator owner(host, MPI_COMM_NULL);
  TANDEM_CHECK_MPI(MPI_Comm_rank(host, &place.local_rank));
  TANDEM_CHECK_MPI(MPI_Comm_size(host, &place.local_size));
  place.node = place.rank;
  TANDEM_CHECK_MPI(MPI_Bcast(&place.node, 1, MPI_INT, 0, host));
  return place;
}

class MpiBackend final : public Backend {
 public:
  MpiBackend(Communicator communicator, const MpiLimits& limits)
      : communicator_(std::make_shared<const Communicator>(std::move(communicator))),
        place_(find_place(communicator_->get())),
        limits_(limits) {}

  std::string_view name() const override { return "mpi"; }
  Place place() const override { return place_; }

  std::unique_ptr<Work> start(const Collective& collective) override {
    auto pending = std::make_unique<Pending>();
    pending->collective = collective;
    pending->communicator = communicator_;
    std::int64_t reduced = 0;  // elements at this rank's output
    switch (collective.kind) {
      case CollectiveKind::send:
      case CollectiveKind::receive:
        start_message(*pending);
        break;
      case CollectiveKind::broadcast:
        start_broadcast(*pending);
        break;
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        start_reduction(*pending);
        if (collective.output != nullptr) reduced = collective.count();
        break;
      case CollectiveKind::reduce_scatter:
        start_reduce_scatter(*pending);
        reduced = collective.counts[static_cast<std::size_t>(place_.rank)];
        break;
      case CollectiveKind::barrier:
        TANDEM_CHECK_MPI(MPI_Ibarrier(communicator_->get(), pending->new_request()));
        break;
      case CollectiveKind::all_to_all:
        start_all_to_all(*pending);
        break;
      default:
        start_blocks(*pending);
    }
    const int divisor = is_reduction(collective.kind) && collective.op == ReduceOp::average ? place_.size : 1;
    return std::make_unique<MpiWork>(std::move(pending), reduced, divisor);
  }

  /// By MPI's blocking call, which may know better algorithms.
  void run(const Collective& collective) override {
    if (collective.kind != CollectiveKind::all_reduce) return Backend::run(collective);
    copy_block(collective.input, collective.output, collective.bytes(collective.count()));
    for_each_chunk(collective.output, collective.count(), size_of(collective.dtype), [&](void* data, int count) {
      TANDEM_CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, data, count, type_of(collective.dtype), operation_of(collective.op),
                                     communicator_->get()));
    });
    if (collective.op == ReduceOp::average)
      divide(collective.output, collective.count(), collective.dtype, place_.size);
  }

  bool moves_by_polls() const override { return true; }
  std::string thread_obstacle() const override { return mpi_thread_obstacle(); }

  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    return std::make_unique<MpiBackend>(communicator_of(communicator_->get(), members), limits_);
  }

 private:
  void start_message(Pending& pending) {
    const Collective& c = pending.collective;
    const auto peer = static_cast<std::size_t>(c.peer);
    const auto [sent, received] = exchange_of(c, place_.rank, place_.size);
    add_message(pending, true, c.peer, c.tag, sent[peer]);
    add_message(pending, false, c.peer, c.tag, received[peer]);
  }

  /// Calls `visit(address, count)` on chunks of so many elements as MPI counts.
  template <typename Visit>
  void for_each_chunk(void* data, std::int64_t count, std::int64_t element_bytes, Visit&& visit) const {
    for (std::int64_t at = 0; at < count; at += limits_.chunk) {
      visit(static_cast<std::byte*>(data) + at * element_bytes, static_cast<int>(std::min(limits_.chunk, count - at)));
    }
  }

  /// Nothing for no bytes.
  void add_message(Pending& pending, bool sends, int peer, int tag, const Block& block) {
    for_each_chunk(block.data, block.bytes, 1, [&](void* data, int count) {
      MPI_Request* const request = pending.new_request();
      if (sends) {
        TANDEM_CHECK_MPI(MPI_Isend(data, count, MPI_BYTE, peer, tag, communicator_->get(), request));
      } else {
        TANDEM_CHECK_MPI(MPI_Irecv(data, count, MPI_BYTE, peer, tag, communicator_->get(), request));
      }
    });
  }

  void start_broadcast(Pending& pending) {
    const Collective& c = pending.collective;
    for_each_chunk(c.output, c.bytes(c.count()), 1, [&](void* data, int count) {
      TANDEM_CHECK_MPI(MPI_Ibcast(data, count, MPI_BYTE, c.peer, communicator_->get(), pending.new_request()));
    });
  }

  void start_reduction(Pending& pending) {
    const Collective& c = pending.collective;
    const bool has_result = c.output != nullptr;
    void* const memory = has_result ? c.output : const_cast<void*>(c.input);
    if (has_result) copy_block(c.input, c.output, c.bytes(c.count()));
    for_each_chunk(memory, c.count(), size_of(c.dtype), [&](void* data, int count) {
      MPI_Request* const request = pending.new_request();
      if (c.kind == CollectiveKind::all_reduce) {
        TANDEM_CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, data, count, type_of(c.dtype), operation_of(c.op),
                                        communicator_->get(), request));
      } else {
        TANDEM_CHECK_MPI(MPI_Ireduce(has_result ? MPI_IN_PLACE : data, has_result ? data : nullptr, count,
                                     type_of(c.dtype), operation_of(c.op), c.peer, communicator_->get(), request));
      }
    });
  }

  void start_reduce_scatter(Pending& pending) {
    const Collective& c = pending.collective;
    if (c.total() > limits_.total) {  // a reduction to each rank
      const auto blocks = blocks_of(c.input, c.counts, c.dtype);
      for (int root = 0; root < place_.size; ++root) {
        const auto rank = static_cast<std::size_t>(root);
        std::int64_t at = 0;
        for_each_chunk(blocks[rank].data, c.counts[rank], size_of(c.dtype), [&](void* data, int count) {
          std::byte* const into = root == place_.rank ? static_cast<std::byte*>(c.output) + c.bytes(at) : nullptr;
          TANDEM_CHECK_MPI(MPI_Ireduce(data, into, count, type_of(c.dtype), operation_of(c.op), root,
                                       communicator_->get(), pending.new_request()));
          at += count;
        });
      }
      return;
    }
    const IntCounts& counts = pending.counts.emplace_back(c.counts, 1);
    TANDEM_CHECK_MPI(MPI_Ireduce_scatter(c.input, c.output, counts.counts.data(), type_of(c.dtype), operation_of(c.op),
                                         communicator_->get(), pending.new_request()));
  }

  /// A rank knows its own blocks alone: all make the same call, and describe long blocks by types.
  void start_all_to_all(Pending& pending) {
    const Collective& c = pending.collective;
    const auto mine = static_cast<std::size_t>(place_.rank);
    auto [sent, received] = exchange_of(c, place_.rank, place_.size);
    copy_block(sent[mine].data, received[mine].data, received[mine].bytes);
    sent[mine].bytes = received[mine].bytes = 0;
    pending.types.reserve(2);
    const BlockTypes& from = pending.types.emplace_back(c.input, sent, limits_);
    const BlockTypes& into = pending.types.emplace_back(c.output, received, limits_);
    TANDEM_CHECK_MPI(MPI_Ialltoallw(c.input, from.counts(), from.offsets(), from.types(), c.output, into.counts(),
                                    into.offsets(), into.types(), communicator_->get(), pending.new_request()));
  }

  /// all_gather, gather and scatter: bytes that only move, in parts that all ranks know.
  void start_blocks(Pending& pending) {
    const Collective& c = pending.collective;
    if (c.bytes(c.total()) > limits_.total) return start_messages(pending);
    const std::int64_t unit = size_of(c.dtype);
    const IntCounts& counts = pending.counts.emplace_back(c.counts, unit);
    const auto rank = static_cast<std::size_t>(place_.rank);
    const int mine = counts.counts[rank], my_offset = counts.offsets[rank];
    const bool is_root = c.peer == place_.rank;
    MPI_Comm communicator = communicator_->get();
    switch (c.kind) {
      case CollectiveKind::all_gather: {
        const bool in_place = c.input == static_cast<std::byte*>(c.output) + my_offset;
        TANDEM_CHECK_MPI(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : c.input, mine, MPI_BYTE, c.output,
                                         counts.counts.data(), counts.offsets.data(), MPI_BYTE, communicator,
                                         pending.new_request()));
        return;
      }
      case CollectiveKind::gather: {
        const bool in_place = is_root && c.input == static_cast<std::byte*>(c.output) + my_offset;
        TANDEM_CHECK_MPI(MPI_Igatherv(in_place ? MPI_IN_PLACE : c.input, mine, MPI_BYTE, c.output, counts.counts.data(),
                                      counts.offsets.data(), MPI_BYTE, c.peer, communicator, pending.new_request()));
        return;
      }
      default: {
        const bool in_place = is_root && c.output == static_cast<const std::byte*>(c.input) + my_offset;
        TANDEM_CHECK_MPI(MPI_Iscatterv(c.input, counts.counts.data(), counts.offsets.data(), MPI_BYTE,
                                       in_place ? MPI_IN_PLACE : c.output, mine, MPI_BYTE, c.peer, communicator,
                                       pending.new_request()));
        return;
      }
    }
  }

  /// The same where it is more than MPI counts: each block as messages.
  void start_messages(Pending& pending) {
    const Collective& c = pending.collective;
    const auto mine = static_cast<std::size_t>(place_.rank);
    const auto [sent, received] = exchange_of(c, place_.rank, place_.size);
    copy_block(sent[mine].data, received[mine].data, received[mine].bytes);
    for (int rank = 0; rank < place_.size; ++rank) {
      if (rank == place_.rank) continue;
      add_message(pending, false, rank, kBlockTag, received[static_cast<std::size_t>(rank)]);
      add_message(pending, true, rank, kBlockTag, sent[static_cast<std::size_t>(rank)]);
    }
  }

  static constexpr int kBlockTag = kMaxCarriedTag + 1;

  std::shared_ptr<const Communicator> communicator_;
  Place place_;
  MpiLimits limits_;
};

}  // namespace

std::unique_ptr<Backend> make_mpi_backend(const MpiLimits& limits) {
  return std::make_unique<MpiBackend>(duplicate(MPI_COMM_WORLD), limits);
}

}  // namespace tandem::comm::detail
