// Asking CUPTI, or events.
#include "tandem/core/device_times.h"

#include "tandem/core/device_query.h"
#include "tandem/core/environment.h"
#include "tandem/core/error.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

namespace tandem::detail {

namespace {

/// Numbers of this thread's open ranges.
thread_local std::vector<std::uint64_t> open_numbers;

/// No two ranges of a process have the same, whatever is recorded when.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::int64_t now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

DeviceMark::~DeviceMark() {
  if (library == nullptr) return;
  library->pop_number(cupti::kOwnRanges, nullptr);
  std::erase(open_numbers, number);
}

void DeviceTimes::begin(Device device) {
  device_ = device;
  from_.clear();
  pending_.clear();
  streams_.clear();
  ranges_.clear();
  recorder_.reset();
  check_device(device);
  if (device.type == DeviceType::cpu) return;
  // CUPTI is not loaded before the GPU was seen to work: without a driver, 13.2 calls itself until the stack is full.
  synchronize(device);
  try {
    auto library =
        std::make_shared<const cupti::Library>(cupti::cupti_files(environment_variable, cuda_is_simulated()));
    recorder_ = std::make_unique<cupti::Recorder>(library);
    from_ = fmt::format("CUPTI {} ({})", version_text(library->file.version()), library->file.path());
  } catch (const Error& error) {
    from_ = fmt::format("CUDA events around each range, not from CUPTI: {}", error.what());
    start_.record(current_stream(device));
    start_.synchronize();
    start_ns_ = now_ns();
  }
}

std::shared_ptr<DeviceMark> DeviceTimes::mark(std::string_view name) {
  if (device_.type == DeviceType::cpu) return nullptr;
  auto mark = std::make_shared<DeviceMark>();
  if (recorder_ == nullptr) {
    mark->stream = current_stream(device_);
    mark->begin.record(mark->stream);
    return mark;
  }
  const std::uint64_t number = next_number(), outer = open_numbers.empty() ? 0 : open_numbers.back();
  if (recorder_->library()->push_number(cupti::kOwnRanges, number) != cupti::kSuccess) return nullptr;
  mark->library = recorder_->library();
  mark->number = number;
  open_numbers.push_back(number);
  ranges_[number] = {.name = std::string(name), .outer = outer};
  return mark;
}

void DeviceTimes::end(const DeviceMark& mark, TimelineEvent event) {
  if (mark.library != nullptr) {
    const auto found = ranges_.find(mark.number);
    if (found == ranges_.end()) return;
    found->second.is_complete = true;
    found->second.module = std::move(event.module);
    found->second.flops = event.flops;
    found->second.bytes = event.bytes;
    return;
  }
  PendingRange range{std::move(event), mark.begin, Event(EventTiming::on)};
  range.event.thread = stream_number(mark.stream);
  range.end.record(mark.stream);
  pending_.push_back(std::move(range));
}

void DeviceTimes::finish(Timeline& timeline) {
  if (recorder_ != nullptr) {
    resolve_records(timeline);
  } else {
    resolve_events(timeline);
  }
  timeline.device_times_from = std::exchange(from_, "");
  recorder_.reset();
  ranges_.clear();
  streams_.clear();
}

void DeviceTimes::resolve_records(Timeline& timeline) {
  try {
    synchronize(device_);
    cupti::Recording recording = recorder_->stop();
    from_ += "; " + recording.notes;
    cupti::add_activities(timeline, std::move(recording.activities), ranges_, device_.index);
  } catch (const Error& error) {
    from_ += fmt::format(", which gave them not out: {}", error.what());
  }
}

/// Asks the GPU when the ranges were at work, and waits until they are done.
void DeviceTimes::resolve_events(Timeline& timeline) {
  for (PendingRange& range : std::exchange(pending_, {})) {
    try {
      range.end.synchronize();
      const double begin_ms = range.begin.elapsed_ms(start_), length_ms = range.end.elapsed_ms(range.begin);
      range.event.begin_ns = start_ns_ + static_cast<std::int64_t>(1e6 * begin_ms);
      range.event.duration_ns = static_cast<std::int64_t>(1e6 * length_ms);
      timeline.device_events.push_back(std::move(range.event));
    } catch (const std::exception&) {
      continue;  // of a stream that was recording a graph: its marks were never passed
    }
  }
}

int DeviceTimes::stream_number(const Stream& stream) {
  const auto found = std::ranges::find(streams_, stream);
  if (found != streams_.end()) return static_cast<int>(found - streams_.begin());
  streams_.push_back(stream);
  return static_cast<int>(streams_.size()) - 1;
}

}  // namespace tandem::detail
