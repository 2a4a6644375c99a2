// Captures: from calls to nodes.
#include "tandem/simulator/capture.h"

#include "tandem/simulator/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace tandem::simulator {

namespace {

/// Those that have not ended.
std::vector<std::shared_ptr<Capture>>& captures() {
  static std::vector<std::shared_ptr<Capture>> all;
  return all;
}

/// Never destroyed: graphs in static objects may outlive every other static.
std::map<const void*, GraphBlock>& graph_blocks() {
  static auto& blocks = *new std::map<const void*, GraphBlock>;
  return blocks;
}

thread_local std::string last_reason;

std::string text_of(const char* call, SiteId where) {
  return where == 0 ? std::string(call) : fmt::format("{} at {}", call, site_of(where).text());
}

bool is_of_this_thread(const Capture& capture) {
  return capture.thread == std::this_thread::get_id() && capture.mode != cudaStreamCaptureModeRelaxed;
}

/// Invalidates the captures that `forbids` holds for, and gives `error` if there is one.
template <typename Forbids>
cudaError_t refuse_if(Forbids&& forbids, cudaError_t error, const char* call, SiteId where) {
  cudaError_t result = cudaSuccess;
  for (const auto& capture : captures())
    if (forbids(*capture)) result = invalidate(*capture, error, text_of(call, where));
  return result;
}

/// Adds the numbers of `more` to ascending ones.
void merge(std::vector<std::size_t>& numbers, const std::vector<std::size_t>& more) {
  std::vector<std::size_t> both;
  std::set_union(numbers.begin(), numbers.end(), more.begin(), more.end(), std::back_inserter(both));
  numbers = std::move(both);
}

/// True if the stream where the capture began waits for all nodes.
bool is_joined(const std::deque<CUgraphNode_st>& nodes, const StreamState& stream) {
  std::vector<bool> awaited(nodes.size());
  for (const std::size_t node : stream.captured_last) awaited[node] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!awaited[i]) continue;
    for (const std::size_t earlier : nodes[i].dependencies) awaited[earlier] = true;
  }
  return std::find(awaited.begin(), awaited.end(), false) == awaited.end();
}

}  // namespace

bool operator==(const GraphNode& a, const GraphNode& b) {
  const auto same = [](const dim3& left, const dim3& right) {
    return left.x == right.x && left.y == right.y && left.z == right.z;
  };
  return a.type == b.type && a.name == b.name && same(a.grid, b.grid) && same(a.block, b.block) &&
         a.shared_bytes == b.shared_bytes && a.arguments == b.arguments && a.dependencies == b.dependencies &&
         a.stream == b.stream;
}

std::vector<std::byte> argument_bytes_of(std::initializer_list<std::uint64_t> numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(std::uint64_t));
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

GraphWork::~GraphWork() {
  const std::lock_guard lock(runtime_mutex());
  for (void* const start : blocks) {
    const auto block = graph_blocks().find(start);
    const bool is_somebodys = block->second.live;  // from now on like any other memory
    graph_blocks().erase(block);
    if (!is_somebodys) free_device_memory(start);
  }
}

void begin_capture(StreamState& stream, cudaStreamCaptureMode mode) {
  static unsigned long long last_id = 0;
  auto capture = std::make_shared<Capture>();
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph = std::make_shared<GraphWork>();
  capture->graph->devices.push_back(stream.device);
  capture->streams.push_back(&stream);
  stream.capture = capture;
  stream.captured_last.clear();
  captures().push_back(std::move(capture));
}

cudaError_t end_capture(const std::shared_ptr<Capture>& capture, std::shared_ptr<GraphWork>& graph) {
  const std::shared_ptr<Capture> kept = capture;  // the reference may be that of a stream
  graph = std::exchange(kept->graph, nullptr);
  cudaError_t status = cudaSuccess;
  if (kept->status == Capture::Status::invalidated) {
    status = cudaErrorStreamCaptureInvalidated;
    last_reason = kept->reason;
  } else if (!is_joined(graph->nodes, *kept->streams.front())) {
    status = cudaErrorStreamCaptureUnjoined;
  }
  kept->status = Capture::Status::ended;
  for (StreamState* const stream : kept->streams) {
    stream->capture = nullptr;
    stream->captured_last.clear();
  }
  std::erase(captures(), kept);
  if (status != cudaSuccess) graph = nullptr;
  return status;
}

cudaError_t invalidate(Capture& capture, cudaError_t error, const std::string& reason) {
  if (capture.status == Capture::Status::active) {
    capture.status = Capture::Status::invalidated;
    capture.reason = reason;
  }
  return error;
}

const std::string& reason_of_invalidation() { return last_reason; }

cudaError_t check_stream(const StreamState& stream, const char* call, SiteId where) {
  if (stream.capture != nullptr && stream.capture->status == Capture::Status::invalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (!stream.is_default || captures().empty()) return cudaSuccess;
  const auto forbids = [&](const Capture& capture) {
    return is_of_this_thread(capture) ||
           std::any_of(capture.streams.begin(), capture.streams.end(), [&](const StreamState* captured) {
             return captured->blocking && captured->device == stream.device;
           });
  };
  return refuse_if(forbids, cudaErrorStreamCaptureImplicit, call, where);
}

cudaError_t check_waiting(const char* call, SiteId where) {
  const auto forbids = [](const Capture& capture) {
    return is_of_this_thread(capture) || capture.mode == cudaStreamCaptureModeGlobal;
  };
  return refuse_if(forbids, cudaErrorStreamCaptureUnsupported, call, where);
}

cudaError_t check_waiting_for_stream(const StreamState& stream, const char* call, SiteId where) {
  if (stream.capture == nullptr) return check_waiting(call, where);
  if (stream.capture->status == Capture::Status::invalidated) return cudaErrorStreamCaptureInvalidated;
  return invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported, text_of(call, where));
}

cudaError_t check_waiting_for_event(const CUevent_st& event, const char* call, SiteId where) {
  if (event.capture == nullptr) return check_waiting(call, where);
  return invalidate(*event.capture, cudaErrorCapturedEvent,
                    fmt::format("{}, for an event that was recorded in it", text_of(call, where)));
}

cudaError_t check_waiting_for_device(int device, const char* call, SiteId where) {
  const auto forbids = [&](const Capture& capture) {
    return is_of_this_thread(capture) || capture.mode == cudaStreamCaptureModeGlobal ||
           std::any_of(capture.streams.begin(), capture.streams.end(),
                       [&](const StreamState* captured) { return captured->device == device; });
  };
  return refuse_if(forbids, cudaErrorStreamCaptureUnsupported, call, where);
}

cudaError_t wait_for_captured(StreamState& stream, const CUevent_st& event, SiteId where) {
  const char* const call = "cudaStreamWaitEvent";
  const std::shared_ptr<Capture> capture = event.capture;
  if (capture->status == Capture::Status::ended) {
    return stream.capture == nullptr ? cudaErrorCapturedEvent
                                     : invalidate(*stream.capture, cudaErrorCapturedEvent, text_of(call, where));
  }
  if (capture->status == Capture::Status::invalidated) return cudaErrorStreamCaptureInvalidated;
  if (stream.is_default) return invalidate(*capture, cudaErrorStreamCaptureImplicit, text_of(call, where));
  if (stream.capture == nullptr) {
    stream.capture = capture;
    stream.captured_last = event.captured_last;
    const auto known = std::find(capture->streams.begin(), capture->streams.end(), &stream);
    if (known == capture->streams.end()) {
      capture->streams.push_back(&stream);
      capture->graph->devices.push_back(stream.device);
    }
    return cudaSuccess;
  }
  if (stream.capture != capture) {
    invalidate(*capture, cudaErrorStreamCaptureMerge, text_of(call, where));
    return invalidate(*stream.capture, cudaErrorStreamCaptureMerge, text_of(call, where));
  }
  merge(stream.captured_last, event.captured_last);
  return cudaSuccess;
}

void submit(StreamState& stream, GraphNode node, SiteId where, std::function<void()> run) {
  if (stream.capture == nullptr) return timeline().enqueue(stream, std::move(node.name), where, std::move(run));
  const auto& streams = stream.capture->streams;
  node.stream = static_cast<std::size_t>(std::find(streams.begin(), streams.end(), &stream) - streams.begin());
  auto& nodes = stream.capture->graph->nodes;
  node.dependencies = std::exchange(stream.captured_last, {nodes.size()});
  CUgraphNode_st& added = nodes.emplace_back();
  static_cast<GraphNode&>(added) = std::move(node);
  added.where = where;
  added.run = std::move(run);
}

void* take_for_graph(StreamState& stream, std::size_t bytes, SiteId where) {
  void* const start = allocate_device_memory(stream.device, bytes);
  if (start == nullptr) return nullptr;
  retire_device_memory(start);
  stream.capture->graph->blocks.push_back(start);
  graph_blocks()[start] = {.graph = stream.capture->graph};
  submit(stream,
         {.type = cudaGraphNodeTypeMemAlloc,
          .name = "cudaMallocAsync",
          .arguments = argument_bytes_of({number_of(start), bytes})},
         where, [start] { renew_device_memory(start); });
  return start;
}

cudaError_t free_in_graph(StreamState& stream, void* start, SiteId where) {
  GraphBlock* const block = graph_block(start);
  if (block == nullptr || block->graph.lock() != stream.capture->graph || block->freed_inside) {
    return invalidate(*stream.capture, cudaErrorInvalidValue,
                      fmt::format("{}, of memory that was not taken in the capture", text_of("cudaFreeAsync", where)));
  }
  block->freed_inside = true;
  submit(
      stream,
      {.type = cudaGraphNodeTypeMemFree, .name = "cudaFreeAsync", .arguments = argument_bytes_of({number_of(start)})},
      where, [start] {
        check_order_of_free(start);
        retire_device_memory(start);
      });
  return cudaSuccess;
}

GraphBlock* graph_block(const void* start) {
  const auto found = graph_blocks().find(start);
  return found == graph_blocks().end() ? nullptr : &found->second;
}

}  // namespace tandem::simulator
