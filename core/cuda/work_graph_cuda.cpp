// CUDA graphs, by capture of a stream.
#include "tandem/core/allocator.h"
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/error.h"

#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

namespace tandem::cuda {

namespace {

/// Throws Error for a call that failed. The next launch must not be blamed for that.
void require_success(cudaError_t status, const char* name,
                     const std::source_location& where = std::source_location::current()) {
  if (status != cudaSuccess) cudaGetLastError();
  throw_if_failed(status, name, where);
}

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
    require_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
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
    require_success(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph_), "cudaStreamEndCapture");
    return graph_;
  }

 private:
  cudaStream_t stream_;
  const RecordingScope& recording_;
  cudaGraph_t graph_ = nullptr;
};

/// What was recorded, to be launched. Nothing of the recording goes on behind it.
std::shared_ptr<void> record(cudaStream_t stream, const std::function<void()>& work,
                             std::vector<std::function<void()>>& actions) {
  RecordingScope recording;
  Capture capture(stream, recording);
  work();
  recording.free_counters(stream);
  const cudaGraph_t graph = capture.finish();
  recording.require_own_memory();
  cudaGraphExec_t executable = nullptr;
  require_success(cudaGraphInstantiateWithFlags(&executable, graph, 0), "cudaGraphInstantiateWithFlags");
  actions = recording.take_actions();
  return {executable, [](void* made) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(made)); }};
}

/// Makes a call by which a graph takes its memory; once more with what our pool and other graphs hold where there is no
/// other.
template <typename Call>
void take_memory(Device device, const char* name, const Call& call) {
  cudaError_t status = call();
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    allocator_for(device).release_cached();
    status = call();
  }
  require_success(status, name);
}

}  // namespace

std::shared_ptr<void> record_graph(Device device, const std::function<void()>& work,
                                   std::vector<std::function<void()>>& actions) {
  std::shared_ptr<void> graph = record(cuda::current_stream(device), work, actions);
  // Else the first launch would take the memory: too late for those that must agree on the recording. The work, and
  // what releases memory, may have made another device this thread's.
  take_memory(device, "cudaGraphUpload",
              [&] { return cudaGraphUpload(static_cast<cudaGraphExec_t>(graph.get()), cuda::current_stream(device)); });
  return graph;
}

void launch_graph(Device device, void* graph) {
  take_memory(device, "cudaGraphLaunch",
              [&] { return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), cuda::current_stream(device)); });
}

}  // namespace tandem::cuda
