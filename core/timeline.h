// A timeline of profiler ranges: when each ran and in which thread, what it computed, and what memory was in use.
#pragma once

#include "tandem/core/communication_event.h"
#include "tandem/core/device.h"
#include "tandem/core/memory.h"
#include "tandem/core/named_tensors.h"
#include "tandem/core/profiler.h"
#include "tandem/core/work_counter.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// A range (ProfileRange) that began and ended while the timeline was recorded. Times are nanoseconds of
/// std::chrono::steady_clock, which the processes of one host share on Linux.
struct TimelineEvent {
  std::string name;                            ///< as ProfileRange was given it
  int thread = 0;                              ///< from 0, in the order in which threads end their first range
  std::int64_t begin_ns = 0, duration_ns = 0;  ///< when it began, and how long it took
  double flops = 0.0, bytes = 0.0;             ///< add_work() within it, and within no inner range; 0: not told
  std::string module = "";  ///< dotted name of the module that it computes, "features.7"; "": of none
};

/// What a GPU was at work on.
enum class ActivityKind : std::uint8_t { kernel, copy, fill };

/// One kernel, copy or fill of a GPU.
struct DeviceActivity {
  ActivityKind kind = ActivityKind::kernel;  ///< which of them
  std::string name;                          ///< "void scale<float>(float*, int)", "copy host to device", "fill"
  std::string op;  ///< the innermost range that enqueued it; "": outside of any, or a range that began before the start
  int stream = 0;  ///< number of the CUDA stream
  std::int64_t begin_ns = 0, duration_ns = 0;                      ///< by the clock of TimelineEvent
  std::array<int, 3> grid{}, block{};                              ///< of kernels
  int registers = 0;                                               ///< of a thread
  std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;  ///< of a block
  std::int64_t bytes = 0;                                          ///< of copies and fills
};

/// Bytes of live storages on the device, by MemoryTag, from this time on.
struct MemorySample {
  std::int64_t time_ns = 0;                           ///< by the clock of TimelineEvent
  std::array<std::int64_t, kMemoryTagCount> bytes{};  ///< by MemoryTag
};

/// A storage that was live when most memory was in use.
struct LiveStorage {
  std::int64_t bytes = 0;                  ///< of the storage
  MemoryTag tag = MemoryTag::activations;  ///< what it serves
  std::string made_in;                     ///< the range that allocated it; "" outside of any
  std::string name = "";                   ///< name_storages(); "": none
  std::string shape = "";  ///< of the tensor that it was allocated for, or that alone is named: "f32[64, 3, 3, 3]"
};

/// What stop_timeline() gives.
struct Timeline {
  std::vector<TimelineEvent> events;  ///< in the order in which they ended
  /// On a GPU: what each range enqueued, from when the stream came to it until it was done with it; `thread` is the
  /// stream's number, in the order of their first ranges or of CUPTI's numbers. By CUDA events, ranges that enqueued
  /// nothing are there with next to no time; by CUPTI, they are not there.
  std::vector<TimelineEvent> device_events = {};
  /// On a GPU, by CUPTI, in the order of time.
  std::vector<DeviceActivity> device_activities = {};
  /// On a GPU: who told its times, and why not CUPTI where it was not that. "" on the CPU.
  std::string device_times_from = "";
  /// Operations between ranks that began and ended meanwhile, in the order in which they ended.
  std::vector<CommunicationEvent> communication = {};
  std::vector<MemorySample> memory;  ///< where memory was taken or freed, or a range ended, and it had changed
  std::int64_t peak_bytes = 0;       ///< the most that was live on the device at a time
  /// Ten at most, largest first, of those allocated while recording or named.
  std::vector<LiveStorage> largest_at_peak;
};

/// Forgets what was recorded and records from now on, in all threads but those that have a TimelineOfThread; memory,
/// and work of a GPU, are that of `device`. Waits for the GPU. The times of a GPU are CUPTI's where that library can be
/// loaded and used, else those of CUDA events around each range. Throws Error if there is no such device. Example:
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

/// Ends recording; returns what was. Ranges that are open are not in it. Waits for the GPU.
Timeline stop_timeline();

/// Tells the names of tensors, parameters and their gradients for instance, whose storages are live: those made before
/// the start count among the largest at the peak from now on. For while a timeline is recorded; does nothing else.
/// Undefined tensors and those of other devices are passed over. A storage of several tensors is named after the first:
/// "conv1.weight and 2 more".
void name_storages(const NamedTensors& tensors);

/// For ranks that are threads of one process: while it is there, start_timeline() and stop_timeline() of this thread
/// record a timeline of what this thread alone does and allocates. Several may be recorded at a time, on the CPU.
/// Memory that is in use is still that of the process.
class TimelineOfThread {
 public:
  /// Throws Error where this thread has one already. The end of the scope, in the same thread, ends its recording.
  TimelineOfThread();
  ~TimelineOfThread();
  TimelineOfThread(const TimelineOfThread&) = delete;
  TimelineOfThread& operator=(const TimelineOfThread&) = delete;
};

/// True between start_timeline() and stop_timeline(), of any thread.
inline bool timeline_is_recorded() { return (detail::listeners() & detail::kTimeline) != 0; }

/// Whether add_work() has any effect.
inline bool work_is_counted() { return (detail::listeners() & (detail::kTimeline | detail::kWorkCounters)) != 0; }

/// Floating-point operations and bytes to and from memory that this thread's innermost range stands for, and that its
/// counters (work_counter.h) count.
inline void add_work(double flops, double bytes) {
  if (!work_is_counted()) [[likely]]
    return;
  count_work(flops);
  if (timeline_is_recorded()) detail::add_work(flops, bytes);
}

namespace detail {
/// The clock of timelines, now.
inline std::int64_t timeline_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The event of a time that began at `begin`.
TimelineEvent timeline_event(std::string name, std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::duration duration);

/// A range that has ended, in this thread, whose number is put in. What `mark` began on the GPU ends with the call; it
/// may be null.
void add_to_timeline(TimelineEvent event, const std::shared_ptr<DeviceMark>& mark = nullptr) noexcept;

/// Where a timeline is recorded.
struct Recording;
/// That of this thread.
std::shared_ptr<Recording> recording_of_thread();

/// An operation that has ended, for another thread or for this one. Does nothing while no timeline is recorded.
void add_to_timeline(const std::shared_ptr<Recording>& recording, CommunicationEvent event) noexcept;
inline void add_to_timeline(CommunicationEvent event) noexcept {
  add_to_timeline(recording_of_thread(), std::move(event));
}

/// The tensor that a storage was made for, as describe() has it; after note_storage() (memory.h).
void describe_storage(const void* storage, std::string shape);
}  // namespace detail

}  // namespace tandem
