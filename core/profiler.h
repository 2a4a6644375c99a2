// Profiler ranges: how often named parts of the work ran and how long they took. In builds with CUDA a profiler such as
// Nsight Systems shows them, too, as NVTX ranges.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// One name's share since start_profile(). Ranges nest: `seconds` counts the ranges inside, `self_seconds` does not.
struct ProfileEntry {
  std::string name;           ///< of the range
  std::int64_t count = 0;     ///< how often it was entered
  double seconds = 0.0;       ///< of all times together
  double self_seconds = 0.0;  ///< of these, outside of ranges within it
};

namespace detail {
/// Who wants to know of ranges: our own statistics, a profiler that listens to NVTX, a timeline (timeline.h), several
/// or, most of the time, none. Counters (work_counter.h) want to know of work alone.
constexpr unsigned kStatistics = 1, kNvtx = 2, kTimeline = 4, kWorkCounters = 16;
extern std::atomic<unsigned> range_listeners;
inline unsigned listeners() { return range_listeners.load(std::memory_order_relaxed); }

/// The NVTX side, in profiler_cuda.cpp; absent from builds without CUDA.
bool nvtx_listens();
void push_nvtx_range(const char* name);
void pop_nvtx_range();

/// Where a stream of the watched GPU was when a range began, or the number that CUPTI has for the range.
struct DeviceMark;

/// The timeline's side, in timeline.cpp, of a range that begins. Null where the timeline is of a CPU.
std::shared_ptr<DeviceMark> mark_device(std::string_view name) noexcept;
/// To the innermost range of this thread.
void add_work(double flops, double bytes);
/// The name of that range; "" outside of any.
std::string innermost_range();
}  // namespace detail

/// True between start_profile() and stop_profile().
inline bool profiling() { return (detail::listeners() & detail::kStatistics) != 0; }

/// Forgets what was collected and collects from now on, in all threads.
void start_profile();

/// Ends collecting; returns what was, by falling self_seconds. Ranges that began before the start or are still open are
/// not in it.
std::vector<ProfileEntry> stop_profile();

/// Times its scope under a name. Costs one load while nobody listens: the name is then neither made nor copied.
/// Example:
///     start_profile();
///     {
///       const ProfileRange range("augment");
///       // ... what is timed
///     }
///     const std::vector<ProfileEntry> entries = stop_profile();
///     const std::string slowest = entries.front().name;  // "augment"
class ProfileRange {
 public:
  /// Begins the range; the end of the scope ends it.
  explicit ProfileRange(std::string_view name) {
    if (detail::listeners() != 0) [[unlikely]]
      begin(std::string(name));
  }
  /// For names that are costly to make: `make_name()` is only called while somebody listens.
  template <std::invocable MakeName>
  explicit ProfileRange(MakeName&& make_name) {
    if (detail::listeners() != 0) [[unlikely]]
      begin(make_name());
  }
  ~ProfileRange() {
    if (listeners_ != 0) [[unlikely]]
      end();
  }
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

  /// Makes the work that was told to the range around this one, since it began or since the last such call, this
  /// one's: for a range that begins behind add_work().
  void take_work_of_outer();

 private:
  using Clock = std::chrono::steady_clock;

  void begin(std::string name);
  void end() noexcept;

  unsigned listeners_ = 0;     // those that know of its beginning
  std::string name_, module_;  // module_: detail::module_path() when it began
  Clock::time_point start_;
  ProfileRange* outer_ = nullptr;
  Clock::duration inner_{};           // time in ranges within this one
  double flops_ = 0.0, bytes_ = 0.0;  // add_work()
  std::shared_ptr<detail::DeviceMark> device_mark_;

  friend void detail::add_work(double flops, double bytes);
  friend std::string detail::innermost_range();
};

}  // namespace tandem
