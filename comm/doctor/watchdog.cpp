// Looking, and who tells what.
#include "tandem/comm/doctor/watchdog.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/core/error.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

namespace tandem::comm {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kBetweenLooks{50};
/// Between the first sight of a fault and its being told.
constexpr std::chrono::milliseconds kBetweenCloseLooks{20};
/// A rank shows several things one after another, and is seen between two of them: a fault must last.
constexpr Seconds kFaultLasts{0.05};
/// One that has failed says why by itself.
constexpr Seconds kFailureLasts{2.0};
/// A fault that was told in another group, where ranks say more of it.
constexpr Seconds kAlarmLasts{1.0};
/// What is looked at closely even where nothing calls for it.
constexpr Seconds kBetweenFullLooks{1.0};
/// A look asks the system for the process of each rank, and all ranks that wait do: with many they take turns of this
/// for each.
constexpr Seconds kPerRank{0.006};
/// A wait that calls for a closer look.
constexpr Seconds kLongWait{0.08};
/// More than this between two looks is time in which this process did not run.
constexpr Seconds kMostBetweenLooks{0.5};

bool has_failed(const GroupView& group, const Diagnosis& diagnosis) {
  return std::ranges::any_of(
      diagnosis.blamed, [&](int rank) { return group.ranks[static_cast<std::size_t>(rank)].end == RankEnd::failed; });
}

}  // namespace

Watchdog::Watchdog(std::shared_ptr<StatusBoard> board, std::unique_ptr<Heartbeats> heartbeats, double timeout,
                   Handler handler)
    : board_(std::move(board)),
      heartbeats_(std::move(heartbeats)),
      timeout_(timeout),
      handler_(std::move(handler)),
      process_(getpid()) {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    fail("the system gives no thread that watches over the ranks: {}; raise its limits", error.what());
  }
}

Watchdog::~Watchdog() {
  if (process_ != getpid()) {  // made by fork(): the thread did not come along
    std::construct_at(&thread_);
    std::construct_at(&changed_);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::report(GroupView group, Diagnosis diagnosis) {
  if (process_ != getpid()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (!report_) report_ = Report{std::move(group), std::move(diagnosis)};
  }
  changed_.notify_one();
}

void Watchdog::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, sees_fault_ ? kBetweenCloseLooks : kBetweenLooks, [this] { return ends_ || report_; });
    if (ends_) break;
    const std::optional<Report> report = report_;
    lock.unlock();
    if (heartbeats_) heartbeats_->beat();
    if (report) return tell(report->group, report->diagnosis);
    if (look()) return;
    lock.lock();
  }
  if (heartbeats_) heartbeats_->finish();
}

void Watchdog::update_own_times(Seconds passed) {
  const std::int64_t now = steady_nanoseconds();
  RankStatus& mine = board_->mine();
  if (const std::uint64_t finished = mine.finished.load(std::memory_order_relaxed); finished != finished_) {
    finished_ = finished;
    mine.finished_since.store(now, std::memory_order_relaxed);
  }
  const std::uint64_t waits = mine.waits.load(std::memory_order_relaxed);
  const bool is_waiting = mine.waits_for.load(std::memory_order_relaxed) != 0;
  const std::uint64_t steps = mine.step.done();
  const bool has_moved = std::exchange(steps_, steps) != steps;
  if (!is_waiting || waits != waits_) {
    waits_ = waits;
    waiting_time_ = {};
    mine.waits_since.store(now, std::memory_order_relaxed);
  } else {
    waiting_time_ = has_moved ? Seconds() : waiting_time_ + passed;
  }
}

bool Watchdog::look() {
  const Clock::time_point now = Clock::now();
  const Seconds passed = std::min<Seconds>(now - std::exchange(last_, now), kMostBetweenLooks);
  update_own_times(passed);
  time_since_look_ += passed;
  const bool is_alarmed = std::ranges::any_of(board_->statuses(), [](const RankStatus& status) {
    return status.has_found_fault.load(std::memory_order_acquire) != 0;
  });
  const bool may_be_late = timeout_ > 0.0 && waiting_time_.count() >= timeout_;
  const bool is_worried = may_be_late || waiting_time_ >= kLongWait;
  const Seconds pause = is_worried ? kPerRank * board_->place().size : kBetweenFullLooks;
  if (!is_alarmed && !sees_fault_ && time_since_look_ < pause) return false;
  const Seconds since_look = std::exchange(time_since_look_, {});
  const GroupView group = board_->look();
  std::optional<Diagnosis> fault = find_fault(group);
  fault_time_ = fault && sees_fault_ ? fault_time_ + since_look : Seconds();
  sees_fault_ = fault.has_value();
  const Seconds lasts = fault && has_failed(group, *fault) ? kFailureLasts : kFaultLasts;
  const bool is_certain = fault && (fault->is_final || fault_time_ >= lasts);
  const bool may_wait = !fault && waits_for_long_work(group, board_->place().rank);
  if (may_wait) waiting_time_ = std::max(Seconds(), waiting_time_ - since_look);
  const bool is_late = may_be_late && !may_wait;
  if (!is_alarmed && !is_late && !is_certain) return false;
  if (!is_late && !is_certain) {
    if (const std::optional<Diagnosis> elsewhere = explain_alarm(group)) {
      alarm_time_ = alarm_time_ ? *alarm_time_ + since_look : Seconds();  // the look before may be long ago
      if (*alarm_time_ < kAlarmLasts) return false;
      tell(group, *elsewhere);
      return true;
    }
  }
  const int longest = longest_waiting(group);
  const Diagnosis diagnosis =
      fault ? *std::move(fault) : explain_wait(group, longest < 0 ? board_->place().rank : longest);
  tell(group, diagnosis);
  return true;
}

void Watchdog::tell(const GroupView& group, const Diagnosis& diagnosis) {
  board_->mine().has_found_fault.store(1, std::memory_order_release);
  if (heartbeats_) heartbeats_->tell();  // before others see this process end
  handler_(group, diagnosis, is_teller(group, board_->place().rank));
}

}  // namespace tandem::comm
