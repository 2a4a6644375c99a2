// Streams that are being captured: where their work goes, and which calls they forbid.
#pragma once

#include "tandem/simulator/graph.h"
#include "tandem/simulator/runtime.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct CUgraphNode_st : tandem::simulator::GraphNode {
  tandem::simulator::SiteId where = 0;
  std::function<void()> run;
};

namespace tandem::simulator {

struct GraphWork;

/// Memory that a graph takes. Its address is the graph's alone as long as that lives.
struct GraphBlock {
  std::weak_ptr<GraphWork> graph;
  bool freed_inside = false;  // by a node of the graph
  bool live = false;          // a launch has taken it, and left it for somebody to free
};

/// The nodes of a graph and the memory that they take. Shared by a graph, its executables and launches under way.
struct GraphWork {
  GraphWork() = default;
  ~GraphWork();
  GraphWork(const GraphWork&) = delete;
  GraphWork& operator=(const GraphWork&) = delete;

  std::deque<CUgraphNode_st> nodes;
  std::vector<int> devices;  // of the streams
  std::vector<void*> blocks;
  int executables = 0;
};

/// From cudaStreamBeginCapture() to cudaStreamEndCapture().
struct Capture {
  enum class Status : std::uint8_t { active, invalidated, ended };
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Status status = Status::active;
  std::string reason;  // for which it was invalidated
  std::shared_ptr<GraphWork> graph;
  std::vector<StreamState*> streams;  // the first is where it began
};

/// Begins a capture of a stream that is not captured.
void begin_capture(StreamState& stream, cudaStreamCaptureMode mode);
/// Ends it: its streams are free again. Gives the error that it ends with, and the nodes if there is none.
cudaError_t end_capture(const std::shared_ptr<Capture>& capture, std::shared_ptr<GraphWork>& graph);
/// From now on a capture has no other end than an error, and neither have calls for its streams. Gives `error`.
cudaError_t invalidate(Capture& capture, cudaError_t error, const std::string& reason);
/// For the text of cudaErrorStreamCaptureInvalidated: why the last capture of this thread ended with it, or "".
const std::string& reason_of_invalidation();

/// Whether work may be enqueued in the stream; `call` and `where` are for messages. The legacy stream waits for
/// blocking streams and they for it, so that it takes no work while one is captured, nor from a thread that captures.
cudaError_t check_stream(const StreamState& stream, const char* call, SiteId where);
/// Whether the calling thread may make a call that waits, or may wait inside the driver.
cudaError_t check_waiting(const char* call, SiteId where);
/// The same for one that waits for a stream or asks it, for an event, for the whole of a device.
cudaError_t check_waiting_for_stream(const StreamState& stream, const char* call, SiteId where);
cudaError_t check_waiting_for_event(const CUevent_st& event, const char* call, SiteId where);
cudaError_t check_waiting_for_device(int device, const char* call, SiteId where);

/// Lets a stream wait for an event that was recorded in a capture.
cudaError_t wait_for_captured(StreamState& stream, const CUevent_st& event, SiteId where);

/// Adds work to the stream, or to the graph where the stream is captured. Of `node` only what the stream cannot tell.
void submit(StreamState& stream, GraphNode node, SiteId where, std::function<void()> run);

/// Memory for a graph, taken by a node; null where there is none left. It is not to be touched before a launch.
void* take_for_graph(StreamState& stream, std::size_t bytes, SiteId where);
/// Frees memory in a captured stream: cudaErrorInvalidValue, which ends the capture, unless it was taken there.
cudaError_t free_in_graph(StreamState& stream, void* start, SiteId where);
/// The memory of a graph that begins here, or null.
GraphBlock* graph_block(const void* start);

/// As arguments of a node.
std::vector<std::byte> argument_bytes_of(std::initializer_list<std::uint64_t> numbers);
inline std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// What cudaFreeAsync() does to memory as its stream comes to it, but for giving it back.
void check_order_of_free(void* start);

}  // namespace tandem::simulator
