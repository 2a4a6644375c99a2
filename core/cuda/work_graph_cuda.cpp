// CUDA graphs, by capture of a stream.
#include "tandem/core/allocator.h"
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/error.h"

#include <mutex>
#include <utility>
#include <vector>

namespace tandem::cuda {

namespace {

/// Lets go of a graph, unless tensors of the work still are in its memory: their addresses then must stay its own.
void destroy_unless_used(cudaGraph_t graph, const RecordingScope& recording) {
  if (!recording.has_kept_memory()) {
    cudaGraphDestroy(graph);
    return;
  }
  static std::mutex mutex;
  static auto& kept = *new std::vector<cudaGraph_t>;
  const std::lock_guard lock(mutex);
  kept.push_back(graph);
}

/// A capture that is ended whatever happens: a stream that stays captured is of no more use to anyone.
class Capture {
 public:
  Capture(cudaStream_t stream, const RecordingScope& recording) : stream_(stream), recording_(recording) {
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_ != nullptr) {
      if (cudaStreamEndCapture(stream_, &graph_) != cudaSuccess) graph_ = nullptr;
      cudaGetLastError();  // the error that ended the work is on its way already
    }
    if (graph_ != nullptr) destroy_unless_used(graph_, recording_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// What was captured; it belongs to this object.
  cudaGraph_t finish() {
    const cudaError_t status = cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph_);
    if (status != cudaSuccess) cudaGetLastError();  // the next launch must not be blamed
    throw_if_failed(status, "cudaStreamEndCapture", std::source_location::current());
    return graph_;
  }

 private:
  cudaStream_t stream_;
  const RecordingScope& recording_;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

std::shared_ptr<void> record_graph(Device device, const std::function<void()>& work,
                                   std::vector<std::function<void()>>& actions) {
  RecordingScope recording;
  const cudaStream_t stream = cuda::current_stream(device);
  Capture capture(stream, recording);
  work();
  recording.free_counters(stream);
  const cudaGraph_t graph = capture.finish();
  recording.require_own_memory();
  cudaGraphExec_t executable = nullptr;
  TANDEM_CHECK_CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  actions = recording.take_actions();
  return {executable, [](void* made) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(made)); }};
}

void launch_graph(Device device, void* graph) {
  const auto launch = [&] {
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), cuda::current_stream(device));
  };
  cudaError_t status = launch();
  if (status == cudaErrorMemoryAllocation) {  // the first one takes the memory of the graph, which our pool may hold
    cudaGetLastError();
    allocator_for(device).release_cached();
    status = launch();
  }
  throw_if_failed(status, "cudaGraphLaunch", std::source_location::current());
}

}  // namespace tandem::cuda
