// Work for a GPU that is recorded once and enqueued as one unit, as often as needed: a CUDA graph.
#pragma once

#include "tandem/core/device.h"

#include <functional>
#include <memory>
#include <vector>

namespace tandem {

/// Work that was recorded on a GPU. Example:
///     #include "tandem/core/tensor.h"
///     void copy_often(const Tensor& from, const Tensor& to) {
///       const WorkGraph graph(from.device(), [&] { to.copy_from_async(from); });
///       for (int time = 0; time < 10; ++time) graph.launch();
///     }
class WorkGraph {
 public:
  /// True on GPUs, simulated ones too. The CPU has no queue.
  static bool can_record(Device device);

  /// True while this thread records work: what the host does then is done once, not at each launch.
  static bool is_recording();

  /// While this thread records work, `action` is kept and called on the host behind each launch: for numbers of the
  /// host that go with the work, such as a count of batches. Else it is called at once. It must not throw.
  static void with_each_launch(std::function<void()> action);

  /// Records what `work` enqueues on the current stream of `device`; nothing of it is done. `work` should have run
  /// before, so that nothing is left to be loaded or made; it waits for nothing, copies from and to no host memory, and
  /// takes no pinned memory. Device memory that it takes belongs to the graph: it frees all of it, and none that was
  /// there before. Another stream takes part once it waits for an event that was recorded by then; the current stream
  /// waits for it in the end. Throws Error where that does not hold, where there is no memory for the graph, which is
  /// taken now, or where can_record() is false.
  WorkGraph(Device device, const std::function<void()>& work);

  /// Enqueues all that was recorded on the current stream of the device, and does what with_each_launch() was given;
  /// the tensors it works on must still live. Two launches never overlap, whatever their streams.
  /// Allocator::release_cached() takes the graph's memory away between launches: the next one takes some, and throws
  /// Error where there is none.
  void launch() const;

  /// The cudaGraphExec_t.
  void* native() const { return graph_.get(); }

 private:
  Device device_;
  std::vector<std::function<void()>> actions_;  // of each launch
  std::shared_ptr<void> graph_;                 // the cudaGraphExec_t
};

}  // namespace tandem
