// Recording: one list for all threads, and the storages that are live.
#include "tandem/core/timeline.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace tandem {

namespace {

constexpr std::size_t kLargest = 10;

struct Recording {
  std::mutex mutex;
  Device device;
  Timeline timeline;
  std::map<const void*, LiveStorage> live;  // allocated since the start
};

Recording& recording() {
  static auto* const one = new Recording;  // outlives ranges and storages of exiting threads
  return *one;
}

int thread_number() {
  static std::atomic<int> threads = 0;
  thread_local const int number = threads++;
  return number;
}

std::int64_t nanoseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

}  // namespace

namespace detail {

void add_to_timeline(std::string_view name, std::chrono::steady_clock::time_point begin,
                     std::chrono::steady_clock::duration duration, double flops, double bytes) noexcept {
  Recording& all = recording();
  const std::int64_t begin_ns = nanoseconds(begin.time_since_epoch()), duration_ns = nanoseconds(duration);
  const std::lock_guard lock(all.mutex);
  all.timeline.events.push_back({std::string(name), thread_number(), begin_ns, duration_ns, flops, bytes});
  all.timeline.memory.push_back({begin_ns + duration_ns, memory_stats(all.device).current});
}

void note_storage(const void* storage, Device device, MemoryTag tag, std::int64_t bytes) {
  Recording& all = recording();
  std::string made_in = innermost_range();
  const std::lock_guard lock(all.mutex);
  if (device != all.device) return;
  all.live[storage] = {bytes, tag, std::move(made_in)};
  const std::int64_t total = memory_stats(device).current_total;
  if (total <= all.timeline.peak_bytes) return;
  all.timeline.peak_bytes = total;
  std::vector<LiveStorage> storages;
  for (const auto& [key, live] : all.live) storages.push_back(live);
  const std::size_t shown = std::min(kLargest, storages.size());
  std::partial_sort(storages.begin(), storages.begin() + static_cast<std::ptrdiff_t>(shown), storages.end(),
                    [](const LiveStorage& a, const LiveStorage& b) { return a.bytes > b.bytes; });
  storages.resize(shown);
  all.timeline.largest_at_peak = std::move(storages);
}

void forget_storage(const void* storage) noexcept {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  all.live.erase(storage);
}

}  // namespace detail

void start_timeline(Device device) {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  all.device = device;
  all.live.clear();
  all.timeline = {};
  all.timeline.peak_bytes = memory_stats(device).current_total;
  detail::range_listeners |= detail::kTimeline;
}

Timeline stop_timeline() {
  detail::range_listeners &= ~detail::kTimeline;
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  all.live.clear();
  return std::exchange(all.timeline, {});
}

}  // namespace tandem
