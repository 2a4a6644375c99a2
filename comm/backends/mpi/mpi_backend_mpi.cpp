// The `mpi` backend: the MPI library's own collectives.
#include <mpi.h>

#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/backends/mpi/mpi_communicator.h"

#include <algorithm>
#include <climits>

namespace tandem::comm::detail {

namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 30;  // MPI 3 counts in int

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
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    default:
      return MPI_SUM;
  }
}

/// Calls `visit(address, count)` on chunks of at most kChunk elements.
template <typename Visit>
void for_each_chunk(void* data, std::int64_t count, std::int64_t element_bytes, Visit&& visit) {
  for (std::int64_t at = 0; at < count; at += kChunk) {
    visit(static_cast<std::byte*>(data) + at * element_bytes, static_cast<int>(std::min(kChunk, count - at)));
  }
}

class MpiWork final : public Work {
 public:
  MpiWork(CollectiveBuffer buffer, ReduceOp op, int ranks, MPI_Comm communicator)
      : buffer_(std::move(buffer)), op_(op), ranks_(ranks) {
    for_each_chunk(buffer_.data, buffer_.count, size_of(buffer_.dtype), [&](void* data, int count) {
      requests_.push_back(MPI_REQUEST_NULL);
      TANDEM_CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, data, count, type_of(buffer_.dtype), operation_of(op_),
                                      communicator, &requests_.back()));
    });
  }
  ~MpiWork() override {
    // MPI cannot cancel a collective: given up by an error, it may still write here until the process ends.
    if (!done_ && !requests_.empty()) new Tensor(buffer_.owner);
  }
  MpiWork(const MpiWork&) = delete;
  MpiWork& operator=(const MpiWork&) = delete;

  bool poll() override {
    if (done_) return true;
    int complete = 0;
    TANDEM_CHECK_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete) finish();
    return done_;
  }
  void wait() override {
    if (done_) return;
    TANDEM_CHECK_MPI(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    finish();
  }

 private:
  void finish() {
    if (op_ == ReduceOp::average) divide(buffer_.data, buffer_.count, buffer_.dtype, ranks_);
    done_ = true;
  }

  CollectiveBuffer buffer_;
  ReduceOp op_;
  int ranks_;
  std::vector<MPI_Request> requests_;
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
  MpiBackend() : communicator_(duplicate(MPI_COMM_WORLD)), place_(find_place(communicator_.get())) {}

  std::string_view name() const override { return "mpi"; }
  Place place() const override { return place_; }

  std::unique_ptr<Work> start_all_reduce(const CollectiveBuffer& buffer, ReduceOp op) override {
    return std::make_unique<MpiWork>(buffer, op, place_.size, communicator_.get());
  }

  void all_reduce(const CollectiveBuffer& buffer, ReduceOp op) override {
    for_each_chunk(buffer.data, buffer.count, size_of(buffer.dtype), [&](void* data, int count) {
      TANDEM_CHECK_MPI(
          MPI_Allreduce(MPI_IN_PLACE, data, count, type_of(buffer.dtype), operation_of(op), communicator_.get()));
    });
    if (op == ReduceOp::average) divide(buffer.data, buffer.count, buffer.dtype, place_.size);
  }

  void broadcast(void* data, std::int64_t bytes, int root) override {
    for_each_chunk(data, bytes, 1, [&](void* chunk, int count) {
      TANDEM_CHECK_MPI(MPI_Bcast(chunk, count, MPI_BYTE, root, communicator_.get()));
    });
  }

  void all_gather(const void* mine, std::int64_t bytes, void* all) override {
    require(bytes <= INT_MAX, "all_gather: {} bytes from each rank are more than MPI takes at once", bytes);
    const int count = static_cast<int>(bytes);
    TANDEM_CHECK_MPI(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, communicator_.get()));
  }

  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    const auto ranks = static_cast<std::size_t>(place_.size);
    const auto length = static_cast<std::int64_t>(mine.size());
    std::vector<std::int64_t> lengths(ranks);
    all_gather(&length, sizeof(length), lengths.data());
    std::vector<int> counts(ranks), offsets(ranks);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
      require(total + lengths[i] <= INT_MAX, "all_gather_bytes: more than {} bytes over all ranks", INT_MAX);
      counts[i] = static_cast<int>(lengths[i]);
      offsets[i] = static_cast<int>(total);
      total += lengths[i];
    }
    std::string all(static_cast<std::size_t>(total), '\0');
    TANDEM_CHECK_MPI(MPI_Allgatherv(mine.data(), static_cast<int>(length), MPI_BYTE, all.data(), counts.data(),
                                    offsets.data(), MPI_BYTE, communicator_.get()));
    std::vector<std::string> result;
    for (std::size_t i = 0; i < ranks; ++i) {
      result.push_back(all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(counts[i])));
    }
    return result;
  }

  void barrier() override { TANDEM_CHECK_MPI(MPI_Barrier(communicator_.get())); }

 private:
  Communicator communicator_;
  Place place_;
};

}  // namespace

std::unique_ptr<Backend> make_mpi_backend() { return std::make_unique<MpiBackend>(); }

}  // namespace tandem::comm::detail
