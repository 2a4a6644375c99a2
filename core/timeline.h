// A timeline of profiler ranges: when each ran and in which thread, what it computed, and what memory was in use.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/memory.h"
#include "tandem/core/profiler.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// A range (ProfileRange) that began and ended while the timeline was recorded. Times are nanoseconds of
/// std::chrono::steady_clock, which the processes of one host share on Linux.
struct TimelineEvent {
  std::string name;
  int thread = 0;  ///< from 0, in the order in which threads end their first range
  std::int64_t begin_ns = 0, duration_ns = 0;
  double flops = 0.0, bytes = 0.0;  ///< add_work() within it, and within no inner range; 0: not told
};

/// Bytes of live storages on the device, by MemoryTag, at the end of a range.
struct MemorySample {
  std::int64_t time_ns = 0;
  std::array<std::int64_t, kMemoryTagCount> bytes{};
};

/// A storage that was live when most memory was in use.
struct LiveStorage {
  std::int64_t bytes = 0;
  MemoryTag tag = MemoryTag::activations;
  std::string made_in;  ///< the range that allocated it; "" outside of any
};

struct Timeline {
  std::vector<TimelineEvent> events;  ///< in the order in which they ended
  std::vector<MemorySample> memory;
  std::int64_t peak_bytes = 0;               ///< the most that was live on the device at a time
  std::vector<LiveStorage> largest_at_peak;  ///< ten at most, largest first, of those allocated while recording
};

/// Forgets what was recorded and records from now on, in all threads; memory is that of `device`. Costs about a
/// microsecond a range.
/// Example:
///     #include "tandem/core/tensor.h"
///     start_timeline();
///     {
///       const ProfileRange range("fill");
///       const Tensor zeros = Tensor::zeros({1024});
///       add_work(0.0, 4096.0);
///     }
///     const Timeline timeline = stop_timeline();
///     const TimelineEvent& fill = timeline.events[0];
///     const std::string text = fill.name;  // "fill"
///     const double bytes = fill.bytes;     // 4096
void start_timeline(Device device = {});

/// Ends recording; returns what was. Ranges that are open are not in it.
Timeline stop_timeline();

/// True between start_timeline() and stop_timeline().
inline bool timeline_is_recorded() { return (detail::listeners() & detail::kTimeline) != 0; }

/// Floating-point operations and bytes to and from memory that this thread's innermost range stands for.
inline void add_work(double flops, double bytes) {
  if (timeline_is_recorded()) [[unlikely]]
    detail::add_work(flops, bytes);
}

}  // namespace tandem
