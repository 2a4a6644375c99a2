// The statistics of the profiler: one table for all threads, and each thread's stack of open ranges.
#include "tandem/core/profiler.h"

#include "tandem/core/device.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/range_observer.h"
#include "tandem/core/timeline.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace tandem {

namespace detail {
std::atomic<unsigned> range_listeners{0};
}  // namespace detail

namespace {

/// Beside those of profiler.h.
constexpr unsigned kObserver = 8, kFollower = 32;
std::atomic<detail::RangeObserver> range_observer{nullptr};
std::atomic<detail::RangeFollower> range_follower{nullptr};

struct Totals {
  std::int64_t count = 0;
  std::chrono::steady_clock::duration total{}, self{};
};

std::mutex table_mutex;
std::map<std::string, Totals, std::less<>>& table() {
  static auto* const totals = new std::map<std::string, Totals, std::less<>>;  // outlives ranges of exiting threads
  return *totals;
}

thread_local ProfileRange* innermost = nullptr;

/// A profiler is there from the start of the process or not at all.
[[maybe_unused]] const bool nvtx_found = [] {
  if constexpr (kHasCuda) {
    if (detail::nvtx_listens()) detail::range_listeners |= detail::kNvtx;
  }
  return (detail::listeners() & detail::kNvtx) != 0;
}();

double to_seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

namespace detail {

void observe_ranges(RangeObserver observer) {
  range_observer = observer;
  if (observer != nullptr) {
    range_listeners |= kObserver;
  } else {
    range_listeners &= ~kObserver;
  }
}

void follow_ranges(RangeFollower follower) {
  range_follower = follower;
  range_listeners |= kFollower;
}

void add_work(double flops, double bytes) {
  if (innermost == nullptr) return;
  innermost->flops_ += flops;
  innermost->bytes_ += bytes;
}

std::string innermost_range() { return innermost == nullptr ? "" : innermost->name_; }

}  // namespace detail

void start_profile() {
  const std::lock_guard lock(table_mutex);
  table().clear();
  detail::range_listeners |= detail::kStatistics;
}

std::vector<ProfileEntry> stop_profile() {
  detail::range_listeners &= ~detail::kStatistics;
  const std::lock_guard lock(table_mutex);
  std::vector<ProfileEntry> entries;
  for (const auto& [name, totals] : table()) {
    entries.push_back({name, totals.count, to_seconds(totals.total), to_seconds(totals.self)});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ProfileEntry& a, const ProfileEntry& b) { return a.self_seconds > b.self_seconds; });
  return entries;
}

void ProfileRange::begin(std::string name) {
  listeners_ = detail::listeners();
  if constexpr (kHasCuda) {
    if (listeners_ & detail::kNvtx) detail::push_nvtx_range(name.c_str());
  }
  name_ = std::move(name);
  module_ = detail::module_path();
  if (listeners_ & kObserver) {
    if (const detail::RangeObserver observer = range_observer.load()) observer(name_);
  }
  if (listeners_ & kFollower) range_follower.load()(name_, module_);
  outer_ = innermost;
  innermost = this;
  if ((listeners_ & detail::kTimeline) != 0) device_mark_ = detail::mark_device(name_);
  start_ = Clock::now();
}

void ProfileRange::take_work_of_outer() {
  if (listeners_ == 0 || outer_ == nullptr) return;
  flops_ += std::exchange(outer_->flops_, 0.0);
  bytes_ += std::exchange(outer_->bytes_, 0.0);
}

void ProfileRange::end() noexcept {
  if constexpr (kHasCuda) {
    if (listeners_ & detail::kNvtx) detail::pop_nvtx_range();
  }
  const Clock::duration elapsed = Clock::now() - start_;
  innermost = outer_;
  if (listeners_ & kFollower) {
    const std::string_view none;
    range_follower.load()(outer_ == nullptr ? none : outer_->name_, outer_ == nullptr ? none : outer_->module_);
  }
  if (outer_ != nullptr) outer_->inner_ += elapsed;
  if ((listeners_ & detail::listeners() & detail::kTimeline) != 0) {
    TimelineEvent event = detail::timeline_event(name_, start_, elapsed);
    event.flops = flops_;
    event.bytes = bytes_;
    event.module = module_;
    detail::add_to_timeline(std::move(event), device_mark_);
  }
  if (!(listeners_ & detail::kStatistics) || !profiling())
    return;  // began before start_profile(), or ends after stop_profile()
  const std::lock_guard lock(table_mutex);
  Totals& totals = table()[name_];
  ++totals.count;
  totals.total += elapsed;
  totals.self += elapsed - inner_;
}

}  // namespace tandem
