// Device tensors on their way through backends that work on host memory.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/core/out.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace tandem::comm {

/// What an operation reads and writes: one of them may be undefined, and both may be the same tensor.
struct StagedTensors {
  Tensor input, output;

  /// Where it takes place.
  Device device() const { return input.defined() ? input.device() : output.device(); }
};

/// Copies device tensors to pinned memory, lets a backend work on them there and copies the result back. Copies run on
/// a stream of their own, beside the device's computing. All on the thread that uses the group.
class HostStaging {
 public:
  /// Starts the backend's work on the copies.
  using Start = std::function<std::unique_ptr<Work>(const StagedTensors& host)>;

  /// Returns at once. Collectives must start in one order on all ranks, however long each rank's copies take: works
  /// start in the order of these calls. The device's work that is enqueued after the work's wait(), or after the
  /// poll() that returned true, sees the result.
  std::unique_ptr<Work> enqueue(const StagedTensors& tensors, Start start);

  /// Starts all works that still wait for their copies. To be called before any other collective.
  void start_all();

  /// Does the same to its end.
  static void run(const StagedTensors& tensors, const std::function<void(const StagedTensors& host)>& body);

 private:
  struct Transfer;
  class StagedWork;

  void start_front();
  void start_copied();
  Stream& stream_of(Device device);

  std::deque<std::shared_ptr<Transfer>> waiting_;
  std::optional<Stream> stream_;
};

}  // namespace tandem::comm
