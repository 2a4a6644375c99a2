// The simulated CUDA runtime: captures and graphs.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/planned_failures.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

struct CUgraph_st {
  std::shared_ptr<tandem::simulator::GraphWork> work;
};

struct CUgraphExec_st {
  std::shared_ptr<tandem::simulator::GraphWork> work;
  /// Streams of its own, for the nodes of all captured streams but the first, which go to where it is launched. A
  /// launch is ordered after the one before, so that they order nothing beyond what the nodes do.
  std::vector<tandem::simulator::StreamState*> branches;
  tandem::simulator::Clock launched;  // all launches so far
  /// The stream that its memory is taken for; null: it has none. Here there is always some, since the capture.
  const tandem::simulator::StreamState* memory_of = nullptr;
};

namespace tandem::simulator {

namespace {

std::vector<GraphNode> copies_of(const GraphWork& work) { return {work.nodes.begin(), work.nodes.end()}; }

/// Never destroyed: executables in static objects may outlive every other static.
std::set<cudaGraphExec_t>& executables() {
  static auto& all = *new std::set<cudaGraphExec_t>;
  return all;
}

/// What an upload takes, or else the next launch: the memory of the graph's nodes. CUDA takes it of what the stream
/// has.
cudaError_t take_memory(CUgraphExec_st& executable, const StreamState& stream) {
  if (executable.memory_of == &stream || executable.work->blocks.empty()) return cudaSuccess;
  if (allocation_fails()) return cudaErrorMemoryAllocation;
  executable.memory_of = &stream;
  return cudaSuccess;
}

/// Whether a launch has left memory of it for somebody to free.
bool has_live_memory(const GraphWork& work) {
  return std::any_of(work.blocks.begin(), work.blocks.end(), [](void* start) { return graph_block(start)->live; });
}

}  // namespace

std::vector<GraphNode> nodes_of(cudaGraph_t graph) { return copies_of(*graph->work); }
std::vector<GraphNode> nodes_of(cudaGraphExec_t executable) { return copies_of(*executable->work); }

void drop_dependency(cudaGraphExec_t executable, std::size_t node, std::size_t dependency) {
  std::erase(executable->work->nodes.at(node).dependencies, dependency);
}

}  // namespace tandem::simulator

using namespace tandem::simulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(runtime_mutex());
  if (stream == nullptr) return note(cudaErrorStreamCaptureUnsupported);
  StreamState& state = state_of(stream);
  if (state.capture != nullptr) return note(cudaErrorIllegalState);
  begin_capture(state, mode);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(runtime_mutex());
  *graph = nullptr;
  StreamState& state = state_of(stream);
  if (state.capture == nullptr) return note(cudaErrorIllegalState);
  Capture& capture = *state.capture;
  if (capture.streams.front() != &state)
    return note(invalidate(capture, cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture of another stream"));
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != std::this_thread::get_id())
    return note(cudaErrorStreamCaptureWrongThread);
  std::shared_ptr<GraphWork> work;
  const cudaError_t status = end_capture(state.capture, work);
  if (status == cudaSuccess) *graph = new CUgraph_st{std::move(work)};
  return note(status);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  const std::lock_guard lock(runtime_mutex());
  const std::shared_ptr<Capture>& capture = state_of(stream).capture;
  *status = cudaStreamCaptureStatusNone;
  if (capture == nullptr) return cudaSuccess;
  *status =
      capture->status == Capture::Status::active ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
  if (id != nullptr) *id = capture->id;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (graph == nullptr || count == nullptr) return note(cudaErrorInvalidValue);
  auto& all = graph->work->nodes;
  if (nodes == nullptr) {
    *count = all.size();
    return cudaSuccess;
  }
  for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all.size() ? &all[i] : nullptr;
  *count = std::min(*count, all.size());
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (node == nullptr || type == nullptr) return note(cudaErrorInvalidValue);
  *type = node->type;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  const std::lock_guard lock(runtime_mutex());
  if (graph == nullptr || executable == nullptr || flags != 0) return note(cudaErrorInvalidValue);
  GraphWork& work = *graph->work;
  if (work.executables > 0 && !work.blocks.empty()) return note(cudaErrorNotSupported);  // as it takes memory
  if (instantiation_fails()) return note(cudaErrorMemoryAllocation);
  auto made = std::make_unique<CUgraphExec_st>();
  made->work = graph->work;
  for (std::size_t i = 1; i < work.devices.size(); ++i)
    made->branches.push_back(&timeline().make_stream(work.devices[i], false));
  ++work.executables;
  *executable = made.release();
  executables().insert(*executable);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(runtime_mutex());
  if (executable == nullptr) return note(cudaErrorInvalidValue);
  StreamState& state = state_of(stream);
  if (state.capture != nullptr)
    return note(invalidate(*state.capture, cudaErrorStreamCaptureUnsupported, "cudaGraphUpload"));
  if (const cudaError_t status = check_stream(state, "cudaGraphUpload", 0); status != cudaSuccess) return note(status);
  return note(take_memory(*executable, state));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(runtime_mutex());
  if (executable == nullptr) return note(cudaErrorInvalidValue);
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaGraphLaunch", 0); status != cudaSuccess) return note(status);
  if (state.capture != nullptr) {  // CUDA makes it a child of the graph
    return note(invalidate(*state.capture, cudaErrorStreamCaptureUnsupported,
                           "cudaGraphLaunch: the simulator has no graphs in graphs"));
  }
  const std::shared_ptr<GraphWork>& work = executable->work;
  std::vector<GraphBlock*> left;
  for (void* const start : work->blocks)
    if (GraphBlock* const block = graph_block(start); !block->freed_inside) left.push_back(block);
  if (has_live_memory(*work)) return note(cudaErrorInvalidValue);
  if (const cudaError_t status = take_memory(*executable, state); status != cudaSuccess) return note(status);
  for (GraphBlock* const block : left) block->live = true;

  state.clock.merge(executable->launched);
  timeline().enqueue(state, "cudaGraphLaunch", 0, [] {});
  const Clock begin = state.clock;
  std::vector<Clock> behind;  // each node
  behind.reserve(work->nodes.size());
  for (const CUgraphNode_st& node : work->nodes) {
    StreamState& branch = node.stream == 0 ? state : *executable->branches[node.stream - 1];
    branch.clock.merge(begin);
    for (const std::size_t earlier : node.dependencies) branch.clock.merge(behind[earlier]);
    timeline().enqueue(branch, node.name, node.where, [work, &node] { node.run(); });
    behind.push_back(branch.clock);
  }
  for (const StreamState* const branch : executable->branches) state.clock.merge(branch->clock);
  executable->launched = state.clock;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(runtime_mutex());
  --executable->work->executables;
  executables().erase(executable);
  delete executable;  // launches that are under way go on
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(runtime_mutex());
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  const std::lock_guard lock(runtime_mutex());
  if (!device_exists(device)) return note(cudaErrorInvalidDevice);
  if (const cudaError_t status = check_waiting("cudaDeviceGraphMemTrim", 0); status != cudaSuccess) return note(status);
  timeline().synchronize_all();  // CUDA leaves the memory of graphs that run; here none does
  for (const cudaGraphExec_t executable : executables())
    if (executable->work->devices.front() == device && !has_live_memory(*executable->work))
      executable->memory_of = nullptr;
  return cudaSuccess;
}
