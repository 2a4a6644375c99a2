// Streams and events: the order in which a device works. Without CUDA headers, and in builds without CUDA, too.
#pragma once

#include "tandem/core/device.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace tandem {

class Event;

/// A queue of work on one device, done in order; queues run beside each other. Copies of a handle name the same queue,
/// which lives as long as one of them. On the CPU all work is done at once: a CPU stream has no queue behind it.
class Stream {
 public:
  /// The CPU's.
  Stream() = default;

  /// A new queue, which never waits for CUDA's legacy default stream. Throws Error if there is no such device.
  explicit Stream(Device device);

  /// The one whose work it takes.
  Device device() const { return device_; }

  /// The cudaStream_t; null on the CPU.
  void* native() const { return queue_.get(); }

  /// Returns once all that was enqueued is done. Throws Error if any of it failed.
  void synchronize() const;

  /// Lets what is enqueued from now on wait for `event`, which may be another stream's. Returns at once on a GPU; on
  /// the CPU, whose streams have no queue, once the event is passed.
  void wait(const Event& event) const;

  /// Whether both are handles of one queue.
  friend bool operator==(const Stream& a, const Stream& b) { return a.device_ == b.device_ && a.queue_ == b.queue_; }

 private:
  Device device_{};
  std::shared_ptr<void> queue_;
};

/// Whether an event notes the time as it is passed, which costs a little.
enum class EventTiming : std::uint8_t { off, on };

/// A mark in a stream. On the CPU it is passed as soon as it is recorded.
class Event {
 public:
  /// Not recorded yet.
  explicit Event(EventTiming timing = EventTiming::off) : timing_(timing) {}

  /// Puts the mark behind all that `stream` holds now; a second call moves the mark.
  void record(const Stream& stream);

  /// Returns once the mark is passed. An event that was never recorded counts as passed.
  void synchronize() const;
  /// The same without waiting: whether the mark is passed.
  bool is_done() const;

  /// Milliseconds of device time from the mark `from` to this one; both on one device, recorded with timing and passed.
  /// Throws Error otherwise.
  double elapsed_ms(const Event& from) const;

 private:
  friend class Stream;

  EventTiming timing_;
  Device device_{};
  std::shared_ptr<void> mark_;  // the cudaEvent_t
  bool recorded_ = false;
  std::chrono::steady_clock::time_point cpu_time_{};
};

/// The stream that this thread's work for `device` goes to: that of the innermost StreamScope, else one that all
/// threads share. Throws Error if there is no such device.
Stream current_stream(Device device);

/// Makes a stream this thread's current one for its device while it lives. Tensors belong to the stream they were made
/// on: see Storage::record_stream before using them on another.
/// Example:
///     const Device device{};  // or a GPU
///     const StreamScope scope{Stream(device)};
///     Event begin(EventTiming::on), end(EventTiming::on);
///     begin.record(current_stream(device));
///     // ... calls whose work is timed
///     end.record(current_stream(device));
///     end.synchronize();
///     const double ms = end.elapsed_ms(begin);
class StreamScope {
 public:
  /// Makes `stream` the current one of its device in this thread; the end of the scope brings back the one before.
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream stream_;
  StreamScope* outer_;

  friend Stream current_stream(Device device);
};

/// Returns once all streams of a device are idle. Throws Error if there is no such device, and if any of the work
/// failed.
void synchronize(Device device);

}  // namespace tandem
