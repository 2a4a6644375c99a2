// Showing each operation, its wait and its end.
#include "tandem/comm/doctor/watched_backend.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/doctor/activity.h"
#include "tandem/comm/doctor/checked_messages.h"
#include "tandem/comm/doctor/compare_operations.h"
#include "tandem/comm/doctor/end_process.h"
#include "tandem/comm/doctor/leave_together.h"
#include "tandem/core/environment.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/work_graph.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

/// While it is there, this rank waits for an operation.
class Waiting {
 public:
  Waiting(RankStatus& status, const OperationView& operation) : status_(status), elsewhere_(status, operation) {
    status_.waits.store(status_.waits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    status_.wait_for(operation);
  }
  ~Waiting() { status_.waits_for.store(0, std::memory_order_release); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  RankStatus& status_;
  WaitElsewhere elsewhere_;
};

/// What the works of a group have in common: the place where they show what they do.
class Watch {
 public:
  Watch(Backend& backend, const WatchOptions& options)
      : options_(options),
        board_(std::make_shared<StatusBoard>(backend, options.timeout, options.whole_ranks)),
        shown_activity_(board_->mine()),
        watchdog_(board_,
                  options.tells_hosts ? make_heartbeats(backend, board_, options.interface, far_obstacle_) : nullptr,
                  options.timeout, [this](const auto&... fault) { end(fault...); }) {
    follow_for_end(board_);
    if (options_.end_all) follow_for_leave_together(board_);
  }
  ~Watch() {
    if (status().process != getpid()) return;  // made by fork(): it has no part in the group
    board_->mine().end.store(std::uncaught_exceptions() > 0 ? RankEnd::failed : RankEnd::left,
                             std::memory_order_release);
    if (options_.end_all) remember_for_leave_together(board_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const WatchOptions& options() const { return options_; }
  /// Of groups of some of these ranks. Hosts that cannot be connected are not tried again, which takes seconds.
  WatchOptions options_of_subgroup(std::span<const int> members) const {
    WatchOptions options = options_;
    const std::vector<int>& numbers = options_.whole_ranks;
    options.whole_ranks.clear();
    for (const int rank : members)
      options.whole_ranks.push_back(numbers.empty() ? rank : numbers[static_cast<std::size_t>(rank)]);
    options.tells_hosts = options.tells_hosts && far_obstacle_.empty();
    return options;
  }
  std::string notice() const {
    if (!board_->obstacle().empty()) return "ranks do not see what the others do: " + board_->obstacle();
    if (!far_obstacle_.empty())
      return "some hosts do not see what ranks of others do, nor that it may take long (a longer timeout lets them "
             "wait): " +
             far_obstacle_;
    return "";
  }
  RankStatus& status() { return board_->mine(); }
  /// Null where ranks do not compare what they do.
  CheckedMessages* messages() { return options_.checks ? &messages_ : nullptr; }

  OperationView begin(const Collective& collective) {
    RankStatus& mine = status();
    const bool is_one = is_message(collective.kind);
    std::atomic<std::uint64_t>& started = is_one ? mine.messages_started : mine.started;
    const OperationView view = view_of(collective, started.load(std::memory_order_relaxed) + 1);
    (is_one ? mine.messages[view.number % RankStatus::kMessages]
            : mine.collectives[view.number % RankStatus::kCollectives])
        .set(view);
    started.store(view.number, std::memory_order_release);
    return view;
  }
  void finish(const OperationView& operation) {
    if (operation.is_message()) return;
    std::atomic<std::uint64_t>& finished = status().finished;
    if (finished.load(std::memory_order_relaxed) < operation.number)
      finished.store(operation.number, std::memory_order_release);
  }
  /// Does `body`, what there is to an operation, while this rank shows that it waits for it. What it throws says more
  /// where the others show what is wrong.
  template <typename Body>
  void wait(const OperationView& operation, Body&& body) {
    const Waiting waiting(status(), operation);
    try {
      body();
    } catch (const AgreedError&) {
      fail(operation);
      throw;
    } catch (const MessageMismatch&) {
      throw;  // says it all, on both ranks
    } catch (const std::exception& error) {
      const std::string more = explain(operation);
      fail(operation);
      if (more.empty()) throw;
      throw Error(fmt::format("{}; {}", error.what(), more));
    }
  }

 private:
  void end(const GroupView& group, Diagnosis diagnosis, bool is_teller) {
    if (std::string numbers = numbers_of(group); !numbers.empty()) diagnosis.lines.push_back(std::move(numbers));
    if (options_.on_fault) {
      options_.on_fault(text_of(diagnosis));  // of all ranks the first text is kept
      if (leaves_soon()) return;
    }
    // A rank tells once, in whichever group that is first.
    is_teller = is_teller || tells_all(*board_);
    const std::string text = is_teller ? text_of(diagnosis) : diagnosis.cause + "\n";
    end_process(*board_, group, diagnosis, {text, is_teller, options_.end_all});
  }

  /// Whether `is_so()` within some time.
  template <typename Condition>
  static bool soon(std::chrono::milliseconds time, Condition&& is_so) {
    constexpr std::chrono::milliseconds kBetweenLooks{20};
    for (auto waited = std::chrono::milliseconds(); waited < time; waited += kBetweenLooks) {
      if (is_so()) return true;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    return false;
  }
  /// Now that its waits end.
  bool leaves_soon() {
    return soon(std::chrono::milliseconds(2000),
                [&] { return status().end.load(std::memory_order_acquire) != RankEnd::none; });
  }

  /// Of an operation that has failed here: what is wrong by what all show, or "" where that is not known or was told
  /// already. Where the others wait on, they are told before this rank goes.
  std::string explain(const OperationView& operation) {
    constexpr std::chrono::milliseconds kForOthers{300}, kForWatchdog{8000};  // end_process() takes 6 s at most
    GroupView group;
    std::optional<Diagnosis> fault;
    const auto is_alarmed = [&] {
      return !options_.on_fault && std::ranges::any_of(group.ranks, &RankView::has_found_fault);
    };
    const auto is_known = [&] {
      group = board_->look();
      return is_alarmed() || (fault = find_fault(group)).has_value();
    };
    if (!soon(kForOthers, is_known)) return "";
    if (is_alarmed()) {
      // A rank that has told what is wrong and ended is no cause: this one's watchdog tells that cause, and ends it.
      soon(kForWatchdog, [] { return false; });
      return "";
    }
    const auto do_others_wait = [&] {
      return std::ranges::any_of(board_->look().ranks, [&](const RankView& rank) {
        return rank.rank != board_->place().rank && rank.is_waiting && rank.state != ProcessState::ended &&
               rank.waits_for.number == operation.number;
      });
    };
    // Where a process has ended, a launcher ends this one soon.
    if (options_.on_fault || (!fault->is_final && soon(kForOthers, [&] { return !do_others_wait(); })))
      return fault->cause;
    // The watchdog tells the other hosts, then ends this process: an end of which they know no cause would be taken for
    // one.
    watchdog_.report(group, *fault);
    soon(kForWatchdog, [] { return false; });
    end(group, *fault, is_teller(group, board_->place().rank));  // a process made by fork() has no watchdog
    return "";
  }

  /// By an error: it is not compared with what others do.
  void fail(const OperationView& operation) {
    if (operation.is_message()) return;
    OperationRecord& record = status().collectives[operation.number % RankStatus::kCollectives];
    if (record.get().number == operation.number) record.set({});
  }

  WatchOptions options_;
  CheckedMessages messages_;
  std::shared_ptr<StatusBoard> board_;
  std::string far_obstacle_;
  ShownActivity shown_activity_;
  Watchdog watchdog_;  // ends first
};

class WatchedWork final : public Work {
 public:
  WatchedWork(std::shared_ptr<Watch> watch, const OperationView& operation, std::unique_ptr<Work> work)
      : watch_(std::move(watch)), operation_(operation), work_(std::move(work)) {}

  bool poll() override {
    if (is_complete_) return true;
    bool complete = false;
    try {
      if (CheckedMessages* const messages = watch_->messages()) messages->move();
      complete = work_->poll();
    } catch (...) {
      watch_->wait(operation_, [] { throw; });
    }
    if (complete) finish();
    return is_complete_;
  }
  void wait() override {
    if (is_complete_) return;
    watch_->wait(operation_, [&] {
      CheckedMessages* const messages = watch_->messages();
      messages == nullptr ? work_->wait() : messages->wait_for(*work_);
    });
    finish();
  }
  /// Which may wait for other ranks' hosts. Ranks that compare what they do move messages on meanwhile, so they wait.
  bool join(const Stream& stream) override {
    if (is_complete_) return true;
    if (watch_->messages() != nullptr) return false;
    bool is_joined = false;
    watch_->wait(operation_, [&] { is_joined = work_->join(stream); });
    return is_joined;
  }
  std::int64_t moves() const override { return work_->moves(); }

 private:
  void finish() {
    is_complete_ = true;
    watch_->finish(operation_);
  }

  std::shared_ptr<Watch> watch_;
  OperationView operation_;
  std::unique_ptr<Work> work_;
  bool is_complete_ = false;
};

class WatchedBackend final : public Backend {
 public:
  WatchedBackend(std::unique_ptr<Backend> backend, const WatchOptions& options)
      : owned_(std::move(backend)), backend_(*owned_), watch_(std::make_shared<Watch>(backend_, options)) {
    backend_.show_steps(&watch_->status().step);
  }
  /// Of a part of a backend that is watched.
  WatchedBackend(Backend& backend, std::shared_ptr<Watch> watch) : backend_(backend), watch_(std::move(watch)) {}
  ~WatchedBackend() override {
    if (owned_) backend_.show_steps(nullptr);  // works may outlive the watch's memory only where they hold it
  }
  WatchedBackend(const WatchedBackend&) = delete;
  WatchedBackend& operator=(const WatchedBackend&) = delete;

  std::string watch_notice() const { return watch_->notice(); }

  std::string_view name() const override { return backend_.name(); }
  Place place() const override { return backend_.place(); }
  bool takes(Device device, CollectiveKind kind) const override { return backend_.takes(device, kind); }
  bool reduces_half(CollectiveKind kind, ReduceOp op) const override { return backend_.reduces_half(kind, op); }

  Backend& on(Device device) override {
    Backend& other = backend_.on(device);
    if (&other == &backend_) return *this;
    for (const auto& part : parts_)
      if (&part->backend_ == &other) return *part;
    parts_.push_back(std::make_unique<WatchedBackend>(other, watch_));
    return *parts_.back();
  }

  std::string recording_obstacle(Device device) const override {
    if (watch_->messages() != nullptr) return "ranks compare what they do before each collective";
    return backend_.recording_obstacle(device);
  }
  /// Shows the launch: what is recorded is no operation of now.
  std::unique_ptr<Work> launched(const Collective& like) override {
    return std::make_unique<WatchedWork>(watch_, begin(like), backend_.launched(like));
  }
  std::unique_ptr<Work> start(const Collective& collective) override {
    if (WorkGraph::is_recording()) return backend_.start(collective);
    const OperationView operation = begin(collective);
    std::unique_ptr<Work> work;
    try {
      CheckedMessages* const messages = operation.is_message() ? watch_->messages() : nullptr;
      work = messages == nullptr ? backend_.start(collective) : messages->start(backend_, collective);
    } catch (...) {
      watch_->wait(operation, [] { throw; });
    }
    return std::make_unique<WatchedWork>(watch_, operation, std::move(work));
  }
  void run(const Collective& collective) override {
    if (is_message(collective.kind) && watch_->messages() != nullptr) return Backend::run(collective);
    // All ranks have begun it when it is not checked any more, so that none of them needs a message of this one before.
    const OperationView operation = begin(collective);
    watch_->wait(operation, [&] { backend_.run(collective); });
    watch_->finish(operation);
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    std::vector<std::string> texts;
    exchange_texts([&] { texts = backend_.all_gather_bytes(mine); });
    return texts;
  }
  std::unique_ptr<Backend> subgroup(std::span<const int> members) override {
    std::string notice;  // was told of the whole group
    return watch(backend_.subgroup(members), watch_->options_of_subgroup(members), notice);
  }
  std::shared_ptr<Storage> allocate_shared(std::int64_t bytes) override {
    std::shared_ptr<Storage> storage;
    exchange_texts([&] { storage = backend_.allocate_shared(bytes); });
    return storage;
  }
  std::optional<MessageCosts> measure_costs() override { return backend_.measure_costs(); }
  void use_costs(const MessageCosts& costs) override {
    exchange_texts([&] { backend_.use_costs(costs); });
  }
  std::optional<MessageCosts> costs() const override { return backend_.costs(); }
  std::optional<double> predicted_all_reduce_seconds(std::int64_t bytes) const override {
    return backend_.predicted_all_reduce_seconds(bytes);
  }
  std::string_view algorithm() const override { return backend_.algorithm(); }
  std::vector<AlgorithmChoice> algorithm_choices() const override { return backend_.algorithm_choices(); }
  std::int64_t all_reduce_bytes_sent() const override { return backend_.all_reduce_bytes_sent(); }
  std::string notice() const override { return backend_.notice(); }
  std::string sharing_obstacle() const override { return backend_.sharing_obstacle(); }
  std::string network() const override { return backend_.network(); }
  bool moves_by_polls() const override { return backend_.moves_by_polls(); }
  std::string thread_obstacle() const override { return backend_.thread_obstacle(); }

 private:
  OperationView begin(const Collective& collective) {
    const OperationView operation = watch_->begin(collective);
    CheckedMessages* const messages = watch_->messages();
    if (messages == nullptr || operation.is_message()) return operation;
    watch_->wait(operation, [&] {
      compare_operations(backend_.on(Device{}), collective, operation, *messages);
      messages->wait_for_order(backend_);
    });
    return operation;
  }

  /// What `body` does between the ranks shows as one all_gather.
  template <typename Body>
  void exchange_texts(Body&& body) {
    const OperationView operation = begin({.kind = CollectiveKind::all_gather});
    watch_->wait(operation, body);
    watch_->finish(operation);
  }

  std::unique_ptr<Backend> owned_;
  Backend& backend_;
  std::shared_ptr<Watch> watch_;
  std::vector<std::unique_ptr<WatchedBackend>> parts_;
};

}  // namespace

double default_timeout() {
  constexpr const char* kName = "TANDEM_COMM_TIMEOUT";
  const char* const text = environment_variable(kName);
  if (text == nullptr) return WatchOptions().timeout;
  const std::optional<double> seconds = parse_number<double>(text);
  require(seconds && *seconds >= 0.0 && std::isfinite(*seconds), "{}={}: give seconds, or 0 for no deadline", kName,
          text);
  return *seconds;
}

std::unique_ptr<Backend> watch(std::unique_ptr<Backend> backend, const WatchOptions& options, std::string& notice) {
  if (backend->place().size == 1) return backend;
  auto watched = std::make_unique<WatchedBackend>(std::move(backend), options);
  notice = watched->watch_notice();
  return watched;
}

}  // namespace tandem::comm
