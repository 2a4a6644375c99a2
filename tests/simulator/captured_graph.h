// A graph and an executable of it, with an owner.
#pragma once

#include "tests/simulator/two_streams.h"

#include <utility>

namespace tandem::test {

/// What `work` enqueues in a stream, captured.
template <typename Work>
cudaGraph_t capture(cudaStream_t stream, Work&& work) {
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  cudaGraph_t graph = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  return graph;
}

class CapturedGraph {
 public:
  template <typename Work>
  CapturedGraph(cudaStream_t stream, Work&& work) : graph_(capture(stream, std::forward<Work>(work))) {
    TANDEM_CHECK_CUDA(cudaGraphInstantiate(&executable_, graph_));
  }
  ~CapturedGraph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  cudaGraph_t graph() const { return graph_; }
  cudaGraphExec_t executable() const { return executable_; }
  void launch(cudaStream_t stream) const { TANDEM_CHECK_CUDA(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

/// An event with an owner.
class MarkedEvent {
 public:
  MarkedEvent() { TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~MarkedEvent() { cudaEventDestroy(event_); }
  MarkedEvent(const MarkedEvent&) = delete;
  MarkedEvent& operator=(const MarkedEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) const { TANDEM_CHECK_CUDA(cudaEventRecord(event_, stream)); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Lets `behind` wait for all that `first` holds now.
inline void order(cudaStream_t first, cudaStream_t behind) {
  const MarkedEvent event;
  event.record(first);
  TANDEM_CHECK_CUDA(cudaStreamWaitEvent(behind, event.get()));
}

}  // namespace tandem::test
