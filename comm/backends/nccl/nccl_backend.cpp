// Order between streams, waiting, and giving up.
#include "tandem/comm/backends/nccl/nccl_backend.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/nccl/nccl_half_sum.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/work_graph.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <thread>
#include <vector>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kYielding{500};
constexpr std::chrono::microseconds kNap{20};

/// An operation on its way through the stream.
struct Pending {
  std::string name;
  Event done;
  Clock::time_point deadline;
  bool is_recorded = false;  // a launch does it, and its event is asked for nothing
};

using Call = std::function<void(NcclCommunicator&, const Stream&)>;

/// A communicator with its stream, and why it failed if it did.
class NcclSession {
 public:
  NcclSession(std::unique_ptr<NcclCommunicator> communicator, Device device, NcclOptions options)
      : device_(device), options_(options), stream_(device), communicator_(std::move(communicator)) {
    guarded("connecting", [&] { wait_until_ready(Clock::now() + options_.start_timeout); });
  }

  ~NcclSession() {
    if (!failure_.empty()) return;
    // While an error takes this rank alone out of step, the others do not come to finalize().
    if (std::uncaught_exceptions() > 0) {
      communicator_->abort();
      return;
    }
    try {
      guarded("closing", [&] {
        communicator_->finalize();
        wait_until_ready(Clock::now() + options_.start_timeout);
        communicator_->close();
      });
    } catch (const std::exception&) {  // it was aborted; all operations were complete before
    }
  }
  NcclSession(const NcclSession&) = delete;
  NcclSession& operator=(const NcclSession&) = delete;

  const Stream& stream() const { return stream_; }

  /// Lets the stream wait for all that the current one holds. Where that is recorded, this is a fork of the recording,
  /// which Work::join() ends. Where a recording is spoilt already, it throws Error, and the communicator stays.
  void fork() const {
    Event ready;
    ready.record(current_stream(device_));
    stream_.wait(ready);
  }

  /// Behind a fork(), lets `calls` enqueue on the stream one after another.
  Pending start(std::string name, std::initializer_list<Call> calls) {
    Pending pending{std::move(name), Event(), Clock::now() + options_.timeout, WorkGraph::is_recording()};
    guarded(pending.name, [&] {
      for (const Call& call : calls) {
        call(*communicator_, stream_);
        wait_until_ready(pending.deadline);
      }
      pending.done.record(stream_);
    });
    return pending;
  }

  /// What the current stream holds now, as an operation.
  Pending launched(std::string name) {
    require(failure_.empty(), "nccl: {}: an earlier operation failed: {}", name, failure_);
    Pending pending{std::move(name), Event(), Clock::now() + options_.timeout};
    pending.done.record(current_stream(device_));
    return pending;
  }

  bool is_complete(const Pending& pending) {
    if (pending.is_recorded) return false;
    bool complete = false;
    guarded(pending.name, [&] {
      complete = communicator_->has_passed(pending.done);
      if (complete) return;
      communicator_->is_ready();  // throws errors that came meanwhile
      check_time(pending.deadline);
    });
    return complete;
  }

  /// On the host: the stream alone would wait for ever for a rank that is gone.
  void wait_for(const Pending& pending) {
    require(!pending.is_recorded, "nccl: {}: is recorded, and nobody can wait for it on the host: join() it",
            pending.name);
    pause_until([&] { return is_complete(pending); });
  }

 private:
  /// Runs `body`; its error ends the communicator, as nothing can be known of the other ranks' state any more.
  template <typename Body>
  void guarded(const std::string& name, Body&& body) {
    require(failure_.empty(), "nccl: {}: an earlier operation failed: {}", name, failure_);
    try {
      body();
    } catch (const Error& error) {
      failure_ = error.what();
      communicator_->abort();
      fail("nccl: {}: {}", name, failure_);
    }
  }

  void wait_until_ready(Clock::time_point deadline) {
    pause_until([&] {
      const bool ready = communicator_->is_ready();
      if (!ready) check_time(deadline);
      return ready;
    });
  }

  static void check_time(Clock::time_point deadline) {
    require(Clock::now() < deadline,
            "not complete in time: another rank ended, hangs, or is late (TANDEM_NCCL_TIMEOUT=SECONDS allows more)");
  }

  template <typename Condition>
  static void pause_until(Condition&& condition) {
    const Clock::time_point since = Clock::now();
    while (!condition()) {
      if (Clock::now() - since < kYielding) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }

  Device device_;
  NcclOptions options_;
  Stream stream_;  // outlives the communicator, which works on it
  std::unique_ptr<NcclCommunicator> communicator_;
  std::string failure_;
};

class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<NcclSession> session, Pending pending, Collective collective)
      : session_(std::move(session)), pending_(std::move(pending)), collective_(std::move(collective)) {}
  ~NcclWork() override {
    if (complete_ || pending_.is_recorded) return;
    // A kernel may still write there.
    detail::keep_for_ever(std::make_shared<Tensor>(std::move(collective_.input_owner)));
    detail::keep_for_ever(std::make_shared<Tensor>(std::move(collective_.output_owner)));
  }
  NcclWork(const NcclWork&) = delete;
  NcclWork& operator=(const NcclWork&) = delete;

  bool poll() override {
    complete_ = complete_ || session_->is_complete(pending_);
    return complete_;
  }
  void wait() override {
    if (!complete_) session_->wait_for(pending_);
    complete_ = true;
  }
  bool join(const Stream& stream) override {
    stream.wait(pending_.done);
    complete_ = complete_ || pending_.is_recorded;
    return true;
  }

 private:
  std::shared_ptr<NcclSession> session_;
  Pending pending_;
  Collective collective_;
  bool complete_ = false;
};

class NcclBackend final : public Backend {
 public:
  NcclBackend(std::unique_ptr<Backend> others, std::unique_ptr<NcclCommunicator> communicator, Device device,
              NcclOptions options, NcclConnector connector)
      : others_(std::move(others)),
        device_(device),
        options_(options),
        connector_(std::move(connector)),
        session_(std::make_shared<NcclSession>(std::move(communicator), device, options)) {}

  std::string_view name() const override { return "nccl"; }
  Place place() const override { return others_->place(); }
  bool takes(Device device, CollectiveKind kind) const override {
    return device == device_ || others_->takes(device, kind);
  }
  Backend& on(Device device) override { return device == device_ ? *this : others_->on(device); }
  /// Not products, which NCCL rounds at each rank, as it does sums; its min and max round nothing.
  bool reduces_half(CollectiveKind kind, ReduceOp op) const override {
    return kind == CollectiveKind::all_reduce && op != ReduceOp::product;
  }

  /// Barriers and operations on host memory are the others'; what is on a GPU is done here.
  std::unique_ptr<Work> start(const Collective& collective) override {
    if (collective.kind == CollectiveKind::barrier) return others_->start(collective);
    const std::string name = describe(collective);
    const bool is_half_sum = needs_half_sum(collective);
    if (is_half_sum && collective.input != collective.output)
      collective.output_owner.copy_from_async(collective.input_owner);
    session_->fork();  // before memory is taken: the graph's, where that is recorded
    Pending pending = is_exchange(collective) ? start_exchange(name, collective)
                      : is_half_sum           ? start_half_sum(name, collective)
                                              : start_call(name, collective);
    return std::make_unique<NcclWork>(session_, std::move(pending), collective);
  }

  std::string recording_obstacle(Device device) const override {
    return device == device_ ? "" : others_->recording_obstacle(device);
  }
  std::unique_ptr<Work> launched(const Collective& like) override {
    return std::make_unique<NcclWork>(session_, session_->launched("the launch that exchanges gradients"), like);
  }

  std::vector<std::string> all_gather_bytes(std::string_view mine) override { return others_->all_gather_bytes(mine); }

  /// By an id of their own: NCCL splits communicators by a call of all ranks, and those of other groups do not come
  /// here.
  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    require(connector_.start != nullptr, "nccl: nothing connects a group of some ranks here");
    ProcessGroup meeting(others_->subgroup(members));
    return connect_nccl(meeting, others_->subgroup(members), connector_, device_, options_);
  }

 private:
  bool needs_half_sum(const Collective& c) const {
    return c.kind == CollectiveKind::all_reduce && place().size > 1 && is_half_sum(c.dtype, c.op);
  }

  /// What NCCL has no call for, or for equal parts only.
  static bool is_exchange(const Collective& c) {
    switch (c.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::broadcast:
        return false;
      case CollectiveKind::all_gather:
        return !has_equal_counts(c);
      default:
        return true;
    }
  }

  static bool has_equal_counts(const Collective& c) {
    return std::ranges::all_of(c.counts, [&](std::int64_t count) { return count == c.count(); });
  }

  static std::int64_t equal_count(const Collective& c) {
    if (!has_equal_counts(c)) fail("nccl: {}: parts must be of one size", describe(c));
    return c.count();
  }

  Pending start_call(const std::string& name, const Collective& c) {
    return session_->start(
        name, {[&](NcclCommunicator& communicator, const Stream& stream) {
          switch (c.kind) {
            case CollectiveKind::all_reduce:
              return communicator.all_reduce(c.input, c.output, c.count(), c.dtype, c.op, stream);
            case CollectiveKind::reduce:
              return communicator.reduce(c.input, c.output, c.count(), c.dtype, c.op, c.peer, stream);
            case CollectiveKind::reduce_scatter:
              return communicator.reduce_scatter(c.input, c.output, equal_count(c), c.dtype, c.op, stream);
            case CollectiveKind::broadcast:
              return communicator.broadcast(c.output, c.bytes(c.count()), c.peer, stream);
            default:
              return communicator.all_gather(c.input, c.bytes(c.count()), c.output, stream);
          }
        }});
  }

  Pending start_half_sum(const std::string& name, const Collective& c) {
    auto sum = std::make_unique<const HalfSum>(c.output_owner, c.op, place(), session_->stream());
    return session_->start(name,
                           {[&](NcclCommunicator& communicator, const Stream&) { sum->exchange(communicator); },
                            [&](NcclCommunicator& communicator, const Stream&) { sum->add_and_gather(communicator); },
                            // Its memory is freed on the stream, of which nothing comes behind the work's end.
                            [&](NcclCommunicator&, const Stream&) { sum.reset(); }});
  }

  Pending start_exchange(const std::string& name, const Collective& c) {
    return session_->start(
        name, {[&](NcclCommunicator& communicator, const Stream& stream) {
          std::vector<NcclExchange> exchanges;
          const BlockExchange blocks = exchange_of(c, place().rank, place().size);
          for (std::size_t rank = 0; rank < blocks.sent.size(); ++rank) {
            const Block &sent = blocks.sent[rank], &received = blocks.received[rank];
            const bool in_place = sent.data == received.data && sent.bytes > 0;
            if (in_place || sent.bytes + received.bytes == 0) continue;
            exchanges.push_back({static_cast<int>(rank), sent.data, sent.bytes, received.data, received.bytes});
          }
          communicator.exchange(exchanges, stream);
        }});
  }

  std::unique_ptr<Backend> others_;
  Device device_;
  NcclOptions options_;
  NcclConnector connector_;
  std::shared_ptr<NcclSession> session_;
};

}  // namespace

NcclOptions nccl_options(const EnvironmentLookup& lookup) {
  NcclOptions options;
  const char* const text = lookup("TANDEM_NCCL_TIMEOUT");
  if (text == nullptr) return options;
  constexpr int kMost = 7 * 24 * 3600;
  const int seconds = parse_number<int>(text).value_or(0);
  require(seconds > 0 && seconds <= kMost, "TANDEM_NCCL_TIMEOUT={}: give whole seconds from 1 to {}", text, kMost);
  options.timeout = std::chrono::seconds(seconds);
  return options;
}

std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Backend> others,
                                           std::unique_ptr<NcclCommunicator> communicator, Device device,
                                           NcclOptions options, NcclConnector connector) {
  return std::make_unique<NcclBackend>(std::move(others), std::move(communicator), device, options,
                                       std::move(connector));
}

std::unique_ptr<Backend> connect_nccl(ProcessGroup& group, std::unique_ptr<Backend> others,
                                      const NcclConnector& connector, Device device, NcclOptions options) {
  const std::string made = run_agreed(group, [&] { return group.rank() == 0 ? connector.make_id() : std::string(); });
  const std::string id = group.all_gather_bytes(made).front();
  return run_agreed(group, [&] {
    return make_nccl_backend(std::move(others), connector.start(id, group), device, options, connector);
  });
}

}  // namespace tandem::comm
