// Recorded work: what is the same with and without CUDA.
#include "tandem/core/work_graph.h"

#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"

#include <utility>

namespace tandem {

bool WorkGraph::can_record(Device device) { return device.type == DeviceType::cuda; }

bool WorkGraph::is_recording() {
  if constexpr (kHasCuda) return cuda::is_recording();
  return false;
}

WorkGraph::WorkGraph(Device device, const std::function<void()>& work) : device_(device) {
  check_device(device);
  require(can_record(device), "work graph: {} cannot record work, only GPUs can", name_of(device));
  if constexpr (kHasCuda) graph_ = cuda::record_graph(device, work, actions_);
}

void WorkGraph::with_each_launch(std::function<void()> action) {
  if constexpr (kHasCuda)
    if (cuda::is_recording()) return cuda::note_action(std::move(action));
  action();
}

void WorkGraph::launch() const {
  if constexpr (kHasCuda) cuda::launch_graph(device_, graph_.get());
  for (const std::function<void()>& action : actions_) action();
}

}  // namespace tandem
