// CUDA graphs, by capture of a stream.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/error.h"

#include <utility>

namespace tandem::cuda {

namespace {
thread_local int recordings = 0;  // of this thread
}

RecordingScope::RecordingScope() { ++recordings; }
RecordingScope::~RecordingScope() { --recordings; }

bool is_recording() { return recordings > 0; }

void require_no_recording(std::string_view what) {
  require(!is_recording(), "work graph: {} cannot be recorded; do it before the WorkGraph is made, or after its launch",
          what);
}

#ifdef TANDEM_SIMULATED_CUDA

std::shared_ptr<void> record_graph(Device device, const std::function<void()>&) {
  tandem::fail("{}: simulated GPUs record no work", name_of(device));
}

void launch_graph(Device, void*) {}

#else

namespace {

/// A capture that is ended whatever happens: a stream that stays captured is of no more use to anyone.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t unfinished = nullptr;
    if (cudaStreamEndCapture(stream_, &unfinished) == cudaSuccess) cudaGraphDestroy(unfinished);
    cudaGetLastError();  // the error that ended the work is on its way already
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t finish() {
    cudaGraph_t graph = nullptr;
    TANDEM_CHECK_CUDA(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph));
    return graph;
  }

 private:
  cudaStream_t stream_;
};

}  // namespace

std::shared_ptr<void> record_graph(Device device, const std::function<void()>& work) {
  Capture capture(cuda::current_stream(device));
  {
    const RecordingScope scope;
    work();
  }
  const std::unique_ptr<CUgraph_st, void (*)(cudaGraph_t)> graph(capture.finish(),
                                                                 [](cudaGraph_t g) { cudaGraphDestroy(g); });
  cudaGraphExec_t executable = nullptr;
  TANDEM_CHECK_CUDA(cudaGraphInstantiateWithFlags(&executable, graph.get(), 0));
  return {executable, [](void* made) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(made)); }};
}

void launch_graph(Device device, void* graph) {
  TANDEM_CHECK_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), cuda::current_stream(device)));
}

#endif

}  // namespace tandem::cuda
