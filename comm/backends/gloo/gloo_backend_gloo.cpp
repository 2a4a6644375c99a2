// From our collectives to Gloo's.
#include "tandem/comm/backends/gloo/gloo_backend.h"

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/combine.h"
#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/backends/gloo/gloo_context.h"
#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/operation_thread.h"
#include "tandem/core/error.h"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/reduce.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

/// Calls `body`; errors of Gloo tell what was under way.
template <typename Body>
auto naming(const std::string& what, int rank, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // not all of Gloo's have a base of their own
    std::string text = error.what();
    if (const auto end = text.find("] "); text.starts_with('[') && end != std::string::npos) text.erase(0, end + 2);
    fail("gloo: {} on rank {}: {}; the process of another rank has ended, or its host cannot be reached", what, rank,
         text);
  }
}

/// Calls `visit` with the type of elements that are combined.
template <typename Visitor>
void visit_elements(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(double{});
    case DType::f32:
      return visit(float{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::i32:
      return visit(std::int32_t{});
    default:
      fail("gloo: no reduction of {}", name_of(dtype));
  }
}

/// out[i] = a[i] op b[i], as Gloo calls it.
template <typename T>
gloo::AllreduceOptions::Func combination(ReduceOp op) {
  return [op](void* out, const void* a, const void* b, std::size_t count) {
    visit_reduction<T>(op, [&](auto combine) {
      auto* const to = static_cast<T*>(out);
      const auto *const left = static_cast<const T*>(a), *const right = static_cast<const T*>(b);
      for (std::size_t i = 0; i < count; ++i) to[i] = combine(left[i], right[i]);
    });
  };
}

// Gloo has no wait without a limit.
constexpr std::chrono::milliseconds kAYear = std::chrono::hours(365 * 24);

/// Bytes on their way to another rank, or from it; no buffer for no bytes.
struct Transfer {
  Buffer buffer;
  bool sends;

  void wait() {
    if (buffer) static_cast<void>(sends ? buffer->waitSend(kAYear) : buffer->waitRecv(kAYear));
  }
};

/// A message under way, and the thread that waits for it: messages come in any order, and Gloo cannot be asked without
/// waiting. Gloo gives a connection up whose buffers end too early, so this lives until the message has arrived or the
/// backend ends, whether its work is kept or not.
class Message {
 public:
  Message(const Collective& collective, Transfer transfer, int rank)
      : collective_(collective), transfer_(std::move(transfer)), thread_([this, rank] {
          std::exception_ptr fault;
          try {
            naming(describe(collective_), rank, [&] { transfer_.wait(); });
          } catch (...) {
            fault = std::current_exception();
          }
          state_->complete(std::move(fault));
          has_ended_ = true;
        }) {}

  bool has_ended() const { return has_ended_; }
  const std::shared_ptr<OperationState>& state() const { return state_; }

 private:
  Collective collective_;  // whose tensors it reads or writes
  Transfer transfer_;
  std::shared_ptr<OperationState> state_ = std::make_shared<OperationState>();
  std::atomic<bool> has_ended_ = false;
  std::jthread thread_;
};

/// What Gloo does, to its end, and messages that it begins.
class GlooOperations {
 public:
  GlooOperations(const Place& place, std::shared_ptr<gloo::Context> context)
      : place_(place), context_(std::move(context)) {}

  Transfer begin_message(const Collective& c) {
    const bool sends = c.kind == CollectiveKind::send;
    void* const memory = sends ? const_cast<void*>(c.input) : c.output;
    return begin({static_cast<std::byte*>(memory), c.bytes(c.count())}, c.peer, sends,
                 kMessages | static_cast<std::uint64_t>(c.tag));
  }

  void carry_out(const Collective& c, std::uint32_t number) {
    switch (c.kind) {
      case CollectiveKind::barrier: {
        gloo::BarrierOptions options(context_);
        options.setTag(number);
        return gloo::barrier(options);
      }
      case CollectiveKind::broadcast:
        return broadcast(c, number);
      case CollectiveKind::all_reduce:
        visit_elements(c.dtype, [&](auto element) { all_reduce<decltype(element)>(c, number); });
        break;
      case CollectiveKind::reduce:
        visit_elements(
            c.dtype, [&](auto element) { reduce<decltype(element)>(c, c.input, c.output, c.count(), c.peer, number); });
        break;
      case CollectiveKind::reduce_scatter:
        return reduce_scatter(c, number);
      case CollectiveKind::all_gather:
        if (std::ranges::find(c.counts, 0) == c.counts.end()) return all_gather(c, number);
        return exchange_blocks(c, number);
      default:
        return exchange_blocks(c, number);
    }
    if (c.op == ReduceOp::average && c.output != nullptr) divide(c.output, c.count(), c.dtype, place_.size);
  }

 private:
  // Gloo's own collectives have smaller numbers in the highest byte of theirs.
  static constexpr std::uint64_t kMessages = std::uint64_t{0xa0} << 56, kBlocks = std::uint64_t{0xa1} << 56;

  Transfer begin(const Block& block, int peer, bool sends, std::uint64_t slot) {
    if (block.bytes == 0) return {nullptr, sends};
    Transfer transfer{context_->createUnboundBuffer(block.data, static_cast<std::size_t>(block.bytes)), sends};
    sends ? transfer.buffer->send(peer, slot) : transfer.buffer->recv(peer, slot);
    return transfer;
  }

  void broadcast(const Collective& c, std::uint32_t number) {
    const std::int64_t bytes = c.bytes(c.count());
    if (bytes == 0) return;
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<std::uint8_t*>(c.output), static_cast<std::size_t>(bytes));
    options.setRoot(c.peer);
    options.setTag(number);
    gloo::broadcast(options);
  }

  template <typename T>
  void all_reduce(const Collective& c, std::uint32_t number) {
    if (c.count() == 0) return;
    const auto count = static_cast<std::size_t>(c.count());
    gloo::AllreduceOptions options(context_);
    if (c.input != c.output) options.setInput(const_cast<T*>(static_cast<const T*>(c.input)), count);
    options.setOutput(static_cast<T*>(c.output), count);
    options.setReduceFunction(combination<T>(c.op));
    options.setTag(number);
    gloo::allreduce(options);
  }

  /// `output` is null but on the root; Gloo takes as much memory on each rank.
  template <typename T>
  void reduce(const Collective& c, const void* input, void* output, std::int64_t elements, int root,
              std::uint32_t number) {
    if (elements == 0) return;
    const auto count = static_cast<std::size_t>(elements);
    std::vector<T> scratch(output == nullptr ? count : 0);
    gloo::ReduceOptions options(context_);
    if (input != output) options.setInput(const_cast<T*>(static_cast<const T*>(input)), count);
    options.setOutput(output == nullptr ? scratch.data() : static_cast<T*>(output), count);
    options.setReduceFunction(combination<T>(c.op));
    options.setRoot(root);
    options.setTag(number);
    gloo::reduce(options);
  }

  /// A reduction to each rank: Gloo has no other for any number of ranks.
  void reduce_scatter(const Collective& c, std::uint32_t number) {
    const auto blocks = blocks_of(c.input, c.counts, c.dtype);
    visit_elements(c.dtype, [&](auto element) {
      for (int root = 0; root < place_.size; ++root) {
        const auto at = static_cast<std::size_t>(root);
        reduce<decltype(element)>(c, blocks[at].data, root == place_.rank ? c.output : nullptr, c.counts[at], root,
                                  number);
      }
    });
    if (c.op == ReduceOp::average)
      divide(c.output, c.counts[static_cast<std::size_t>(place_.rank)], c.dtype, place_.size);
  }

  void all_gather(const Collective& c, std::uint32_t number) {
    const auto blocks = blocks_of(c.output, c.counts, c.dtype);
    const Block& mine = blocks[static_cast<std::size_t>(place_.rank)];
    std::vector<std::size_t> bytes;
    for (const Block& block : blocks) bytes.push_back(static_cast<std::size_t>(block.bytes));
    gloo::AllgathervOptions options(context_);
    if (c.input != mine.data)
      options.setInput(static_cast<std::uint8_t*>(const_cast<void*>(c.input)), static_cast<std::size_t>(mine.bytes));
    options.setOutput(static_cast<std::uint8_t*>(c.output), std::move(bytes));
    options.setTag(number);
    gloo::allgatherv(options);
  }

  /// gather, scatter and all_to_all, and all_gather where a rank has nothing: each block as a message.
  void exchange_blocks(const Collective& c, std::uint32_t number) {
    const auto mine = static_cast<std::size_t>(place_.rank);
    const auto [sent, received] = exchange_of(c, place_.rank, place_.size);
    copy_block(sent[mine].data, received[mine].data, received[mine].bytes);
    std::vector<Transfer> transfers;
    for (int rank = 0; rank < place_.size; ++rank) {
      if (rank == place_.rank) continue;
      transfers.push_back(begin(received[static_cast<std::size_t>(rank)], rank, false, kBlocks | number));
      transfers.push_back(begin(sent[static_cast<std::size_t>(rank)], rank, true, kBlocks | number));
    }
    for (Transfer& transfer : transfers) transfer.wait();
  }

  Place place_;
  std::shared_ptr<gloo::Context> context_;
};

/// What an operation under way needs.
struct GlooSession {
  explicit GlooSession(std::unique_ptr<Backend> backend)
      : meeting(std::move(backend)),
        operations(meeting->place(), naming("start", meeting->place().rank, [&] { return connect_gloo(*meeting); })) {}

  bool is_idle() {
    std::erase_if(messages, [](const auto& message) { return message->has_ended(); });
    return messages.empty() && thread.is_idle();
  }

  std::unique_ptr<Backend> meeting;
  GlooOperations operations;
  std::vector<std::unique_ptr<Message>> messages;
  OperationThread thread;  // ends first: it uses the others
};

class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(std::unique_ptr<Backend> meeting)
      : place_(meeting->place()), session_(std::make_unique<GlooSession>(std::move(meeting))) {}
  ~GlooBackend() override {
    // Dropped with operations under way, after an error that is: Gloo has no way to end them, and if this rank closed
    // its connections the others would be told of that before it can say why.
    if (!session_->is_idle()) detail::keep_for_ever(std::move(session_));
  }
  GlooBackend(const GlooBackend&) = delete;
  GlooBackend& operator=(const GlooBackend&) = delete;

  std::string_view name() const override { return "gloo"; }
  Place place() const override { return place_; }

  std::unique_ptr<Work> start(const Collective& collective) override {
    if (!is_message(collective.kind)) return session_->thread.start(operation_of(collective));
    return naming(describe(collective), place_.rank, [&]() -> std::unique_ptr<Work> {
      Transfer transfer = session_->operations.begin_message(collective);
      if (!transfer.buffer) return done_work();
      std::erase_if(session_->messages, [](const auto& message) { return message->has_ended(); });
      auto message = std::make_unique<Message>(collective, std::move(transfer), place_.rank);
      auto work = work_of(message->state());
      session_->messages.push_back(std::move(message));
      return work;
    });
  }

  void run(const Collective& collective) override {
    if (!is_message(collective.kind)) return session_->thread.run(operation_of(collective));
    naming(describe(collective), place_.rank, [&] { session_->operations.begin_message(collective).wait(); });
  }

  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    return std::make_unique<GlooBackend>(session_->meeting->subgroup(members));
  }

 private:
  /// All that it takes: the collective is carried out later, perhaps.
  std::function<void()> operation_of(const Collective& collective) {
    const std::uint32_t number = ++number_;
    return [&operations = session_->operations, rank = place_.rank, collective, number] {
      naming(describe(collective), rank, [&] { operations.carry_out(collective, number); });
    };
  }

  Place place_;
  std::uint32_t number_ = 0;  // of collectives that were started, on all ranks alike
  std::unique_ptr<GlooSession> session_;
};

}  // namespace

std::string_view missing_gloo() { return ""; }

std::unique_ptr<Backend> make_gloo_backend(std::unique_ptr<Backend> meeting) {
  return std::make_unique<GlooBackend>(std::move(meeting));
}

}  // namespace tandem::comm
