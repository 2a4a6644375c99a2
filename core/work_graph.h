// Work for a GPU that is recorded once and enqueued as one unit, as often as needed: a CUDA graph.
#pragma once

#include "tandem/core/device.h"

#include <functional>
#include <memory>

namespace tandem {

class WorkGraph {
 public:
  /// True on real GPUs. The CPU has no queue, and simulated GPUs record nothing.
  static bool can_record(Device device);

  /// Records what `work` enqueues on the current stream of `device`; nothing of it is done. `work` should have run
  /// before, so that nothing is left to be loaded or made; it waits for nothing, copies from and to no host memory,
  /// takes no pinned memory and frees no memory that it has not taken. What it takes and frees belongs to the graph.
  /// Throws Error where that does not hold, or where can_record() is false.
  WorkGraph(Device device, const std::function<void()>& work);

  /// Enqueues all that was recorded on the current stream of the device; the tensors it works on must still live.
  void launch() const;

 private:
  Device device_;
  std::shared_ptr<void> graph_;  // the cudaGraphExec_t
};

}  // namespace tandem
