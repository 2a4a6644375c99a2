// Recording: one list for all threads, or for one, and the storages that are live.
#include "tandem/core/timeline.h"

#include "tandem/core/device_times.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace tandem {

namespace {

constexpr std::size_t kLargest = 10;

/// A storage, and a number that no other one has, also behind it in the same place.
struct NumberedStorage {
  LiveStorage storage;
  std::uint64_t number = 0;
};

}  // namespace

struct detail::Recording {
  std::mutex mutex;
  bool is_on = false;
  Device device;
  Timeline timeline;
  std::map<const void*, NumberedStorage> live;  // allocated since the start, or named
  std::vector<NumberedStorage> at_peak;
  std::uint64_t numbers = 0;
  detail::DeviceTimes device_times;
};

namespace {

using detail::Recording;

const std::shared_ptr<Recording>& recording_of_process() {
  // Outlives ranges and storages of exiting threads.
  static auto* const one = new std::shared_ptr<Recording>(std::make_shared<Recording>());
  return *one;
}

thread_local std::shared_ptr<Recording> own_recording;  // null: the process's

Recording& recording() { return own_recording ? *own_recording : *recording_of_process(); }

/// Ranges have a listener while any recording is on. Called with the recording's mutex held.
void switch_on_or_off(Recording& all, bool is_on) {
  static std::mutex mutex;
  static int recordings = 0;
  const std::lock_guard lock(mutex);
  if (std::exchange(all.is_on, is_on) == is_on) return;
  recordings += is_on ? 1 : -1;
  if (recordings > 0) {
    detail::range_listeners |= detail::kTimeline;
  } else {
    detail::range_listeners &= ~detail::kTimeline;
  }
}

std::int64_t nanoseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

int thread_number() {
  static std::atomic<int> threads = 0;
  thread_local const int number = threads++;
  return number;
}

/// What follows is called with the mutex held.

void sample_memory(Recording& all, std::int64_t time_ns) {
  std::vector<MemorySample>& memory = all.timeline.memory;
  const auto current = memory_stats(all.device).current;
  if (memory.empty() || memory.back().bytes != current) memory.push_back({time_ns, current});
}

void note_peak(Recording& all) {
  all.at_peak.clear();
  for (const auto& [key, live] : all.live) all.at_peak.push_back(live);
  const std::size_t shown = std::min(kLargest, all.at_peak.size());
  std::ranges::partial_sort(all.at_peak, all.at_peak.begin() + static_cast<std::ptrdiff_t>(shown),
                            std::ranges::greater(),
                            [](const NumberedStorage& numbered) { return numbered.storage.bytes; });
  all.at_peak.resize(shown);
}

/// Changes what is known of a storage, also where it was live at the peak.
template <typename Change>
void change_storage(Recording& all, const void* storage, Change&& change) {
  const auto found = all.live.find(storage);
  if (found == all.live.end()) return;
  change(found->second.storage);
  for (NumberedStorage& numbered : all.at_peak)
    if (numbered.number == found->second.number) change(numbered.storage);
}

}  // namespace

namespace detail {

std::shared_ptr<DeviceMark> mark_device(std::string_view name) noexcept {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  try {
    return all.is_on ? all.device_times.mark(name) : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // the host's row has the range
  }
}

TimelineEvent timeline_event(std::string name, std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::duration duration) {
  return {
      .name = std::move(name), .begin_ns = nanoseconds(begin.time_since_epoch()), .duration_ns = nanoseconds(duration)};
}

void add_to_timeline(TimelineEvent event, const std::shared_ptr<DeviceMark>& mark) noexcept {
  Recording& all = recording();
  event.thread = thread_number();
  const std::lock_guard lock(all.mutex);
  if (!all.is_on) return;
  TimelineEvent on_device;
  if (mark != nullptr) {
    on_device = event;
    on_device.thread = 0;
    on_device.begin_ns = on_device.duration_ns = 0;
  }
  all.timeline.events.push_back(std::move(event));
  sample_memory(all, detail::timeline_ns());
  if (mark == nullptr) return;
  try {
    all.device_times.end(*mark, std::move(on_device));
  } catch (const std::exception&) {
    return;
  }
}

std::shared_ptr<Recording> recording_of_thread() { return own_recording ? own_recording : recording_of_process(); }

void add_to_timeline(const std::shared_ptr<Recording>& recording, CommunicationEvent event) noexcept {
  const std::lock_guard lock(recording->mutex);
  if (recording->is_on) recording->timeline.communication.push_back(std::move(event));
}

void note_storage(const void* storage, Device device, MemoryTag tag, std::int64_t bytes) {
  Recording& all = recording();
  std::string made_in = innermost_range();
  const std::lock_guard lock(all.mutex);
  if (!all.is_on || device != all.device) return;
  all.live[storage] = {{bytes, tag, std::move(made_in)}, ++all.numbers};
  sample_memory(all, detail::timeline_ns());
  const std::int64_t total = memory_stats(device).current_total;
  if (total <= all.timeline.peak_bytes) return;
  all.timeline.peak_bytes = total;
  note_peak(all);
}

void describe_storage(const void* storage, std::string shape) {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  change_storage(all, storage, [&](LiveStorage& live) { live.shape = shape; });
}

void forget_storage(const void* storage) noexcept {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  if (!all.is_on) return;
  all.live.erase(storage);
  sample_memory(all, detail::timeline_ns());
}

}  // namespace detail

TimelineOfThread::TimelineOfThread() {
  require(!own_recording, "TimelineOfThread: this thread has one already");
  own_recording = std::make_shared<Recording>();
}

TimelineOfThread::~TimelineOfThread() {
  {
    const std::lock_guard lock(own_recording->mutex);
    switch_on_or_off(*own_recording, false);
  }
  own_recording = nullptr;
}

void start_timeline(Device device) {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  all.device = device;
  all.live.clear();
  all.at_peak.clear();
  all.timeline = {};
  all.timeline.peak_bytes = memory_stats(device).current_total;
  all.device_times.begin(device);
  switch_on_or_off(all, true);
}

Timeline stop_timeline() {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  switch_on_or_off(all, false);
  all.device_times.finish(all.timeline);
  for (NumberedStorage& numbered : std::exchange(all.at_peak, {}))
    all.timeline.largest_at_peak.push_back(std::move(numbered.storage));
  all.live.clear();
  return std::exchange(all.timeline, {});
}

void name_storages(const NamedTensors& tensors) {
  if (!timeline_is_recorded()) return;
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  if (!all.is_on) return;
  std::map<const void*, std::pair<LiveStorage, int>> named;  // the latter: how many tensors are in it
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || tensor.device() != all.device) continue;
    const Storage& storage = *tensor.storage();
    auto& [known, count] = named[&storage];
    if (count++ == 0) known = {storage.bytes(), storage.tag(), "", name, describe(tensor)};
  }
  for (const auto& [storage, known] : named) {
    const auto& [live, count] = known;
    const std::string name = count == 1 ? live.name : fmt::format("{} and {} more", live.name, count - 1);
    const std::string shape = count == 1 ? live.shape : "";
    if (all.live.try_emplace(storage, NumberedStorage{live, all.numbers + 1}).second) {
      ++all.numbers;
      all.live[storage].storage.shape = shape;
    }
    change_storage(all, storage, [&](LiveStorage& entry) {
      entry.name = name;
      if (entry.shape.empty()) entry.shape = shape;
    });
  }
  if (memory_stats(all.device).current_total >= all.timeline.peak_bytes) note_peak(all);
}

}  // namespace tandem
