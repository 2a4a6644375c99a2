// When a GPU was at work for each range, while a timeline is recorded: by CUPTI where that can be used, else by CUDA
// events around each range.
#pragma once

#include "tandem/core/cupti/ranges.h"
#include "tandem/core/cupti/recorder.h"
#include "tandem/core/stream.h"
#include "tandem/core/timeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::detail {

/// A range that began: where its stream was, or its number, which CUPTI knows of until this object goes.
struct DeviceMark {
  DeviceMark() = default;
  ~DeviceMark();
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;

  Stream stream;
  Event begin{EventTiming::on};
  std::shared_ptr<const cupti::Library> library;  // null: the event counts
  std::uint64_t number = 0;
};

/// Not for several threads at once.
class DeviceTimes {
 public:
  /// Forgets what was and begins anew, behind all that the GPU has to do. Throws Error if there is no such device.
  void begin(Device device);

  /// Of this thread's range `name`. Null on the CPU.
  std::shared_ptr<DeviceMark> mark(std::string_view name);

  /// The range that `mark` began is over. `event` has its name and its work.
  void end(const DeviceMark& mark, TimelineEvent event);

  /// Waits for the GPU and tells `timeline` what it did.
  void finish(Timeline& timeline);

 private:
  /// A range that was enqueued, the times of which the GPU knows later.
  struct PendingRange {
    TimelineEvent event;
    Event begin, end;
  };

  void resolve_events(Timeline& timeline);
  void resolve_records(Timeline& timeline);
  int stream_number(const Stream& stream);

  Device device_;
  std::string from_;  // Timeline::device_times_from

  Event start_{EventTiming::on};
  std::int64_t start_ns_ = 0;  // when the host saw it passed
  std::vector<PendingRange> pending_;
  std::vector<Stream> streams_;

  std::unique_ptr<cupti::Recorder> recorder_;  // null: events count
  cupti::NumberedRanges ranges_;
};

}  // namespace tandem::detail
