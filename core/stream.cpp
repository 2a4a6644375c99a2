// Streams and events: what is the same on all devices.
#include "tandem/core/stream.h"

#include "tandem/core/cuda/runtime.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"

#include <mutex>
#include <vector>

namespace tandem {

namespace {

thread_local StreamScope* innermost_scope = nullptr;

/// The stream of all threads without a scope; made at its first use. Never destroyed: storages in static objects are
/// freed on it.
const Stream& shared_stream(Device device) {
  struct Slot {
    std::once_flag once;
    Stream stream;
  };
  static auto& slots = *new std::vector<Slot>(static_cast<std::size_t>(cuda_device_count()));
  Slot& slot = slots[static_cast<std::size_t>(device.index)];
  std::call_once(slot.once, [&] { slot.stream = Stream(device); });
  return slot.stream;
}

}  // namespace

Stream::Stream(Device device) : device_(device) {
  check_device(device);
  if (device.type == DeviceType::cpu) return;
  if constexpr (kHasCuda) queue_ = cuda::make_stream(device.index);
}

void Stream::synchronize() const {
  if (!queue_) return;
  if constexpr (kHasCuda) cuda::synchronize_stream(native());
}

void Stream::wait(const Event& event) const {
  if (!event.mark_) return;
  if (!queue_) return event.synchronize();
  if constexpr (kHasCuda) cuda::wait_for_event(native(), event.mark_.get());
}

void Event::record(const Stream& stream) {
  if (!mark_ || device_ != stream.device()) {
    mark_.reset();
    if constexpr (kHasCuda) {
      if (stream.native()) mark_ = cuda::make_event(stream.device().index, timing_ == EventTiming::on);
    }
  }
  device_ = stream.device();
  recorded_ = true;
  cpu_time_ = std::chrono::steady_clock::now();
  if constexpr (kHasCuda) {
    if (mark_) cuda::record_event(mark_.get(), stream.native());
  }
}

void Event::synchronize() const {
  if (!mark_) return;
  if constexpr (kHasCuda) cuda::synchronize_event(mark_.get());
}

bool Event::is_done() const {
  if (!mark_) return true;
  if constexpr (kHasCuda) return cuda::is_event_done(mark_.get());
  return true;
}

double Event::elapsed_ms(const Event& from) const {
  require(timing_ == EventTiming::on && from.timing_ == EventTiming::on,
          "elapsed_ms: events note no time; make them with EventTiming::on");
  require(recorded_ && from.recorded_ && device_ == from.device_,
          "elapsed_ms: needs two recorded events of one device, got {} on {} and {} on {}",
          from.recorded_ ? "one" : "none", name_of(from.device_), recorded_ ? "one" : "none", name_of(device_));
  require(is_done() && from.is_done(), "elapsed_ms: an event is not passed yet; call synchronize() first");
  if constexpr (kHasCuda) {
    if (mark_) return cuda::elapsed_ms(from.mark_.get(), mark_.get());
  }
  return std::chrono::duration<double, std::milli>(cpu_time_ - from.cpu_time_).count();
}

Stream current_stream(Device device) {
  check_device(device);
  for (const StreamScope* scope = innermost_scope; scope != nullptr; scope = scope->outer_) {
    if (scope->stream_.device() == device) return scope->stream_;
  }
  return device.type == DeviceType::cpu ? Stream() : shared_stream(device);
}

StreamScope::StreamScope(const Stream& stream) : stream_(stream), outer_(innermost_scope) {
  if constexpr (kHasCuda) {  // what names no device, pinned memory, is taken in the context of this one
    if (stream.native() != nullptr) cuda::use_device(stream.device().index);
  }
  innermost_scope = this;
}

StreamScope::~StreamScope() { innermost_scope = outer_; }

void synchronize(Device device) {
  check_device(device);
  if (device.type == DeviceType::cpu) return;
  if constexpr (kHasCuda) cuda::synchronize_device(device.index);
}

}  // namespace tandem
