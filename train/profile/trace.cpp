// Writing trace events, and bringing those of all ranks together.
#include "tandem/train/profile/trace.h"

#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/process_info.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;

/// Rows of a GPU's streams are numbered from here on, behind those of threads.
constexpr int kFirstStream = 1000;
constexpr int kCheckpointRow = kFirstStream - 1;
/// Kernels and copies have rows of their own: those of a graph's branches may run beside each other, and so lie neither
/// within a range nor outside of it.
constexpr int kFirstKernels = 2 * kFirstStream;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// What to add to this process's steady clock so that it tells the time of day.
std::int64_t clock_offset_ns() {
  const auto of = [](auto now) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  };
  return of(std::chrono::system_clock::now()) - of(std::chrono::steady_clock::now());
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

Json name_of_row(int rank, int thread, std::string_view what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json json_of(const TimelineEvent& event, int rank, std::int64_t begin_ns) {
  Json json = {{"name", event.name},
               {"ph", "X"},
               {"pid", rank},
               {"tid", event.thread},
               {"ts", microseconds(begin_ns)},
               {"dur", microseconds(event.duration_ns)}};
  if (event.flops > 0.0 || event.bytes > 0.0) {
    json["args"] = {{"gflop", event.flops * 1e-9}, {"megabytes", event.bytes * 1e-6}};
    if (event.duration_ns > 0) json["args"]["gflop/s"] = event.flops / static_cast<double>(event.duration_ns);
  }
  return json;
}

Json json_of(const DeviceActivity& activity, int rank, std::int64_t begin_ns) {
  Json args = {{"op", activity.op}};
  if (activity.kind == ActivityKind::kernel) {
    args["grid"] = activity.grid;
    args["block"] = activity.block;
    args["registers"] = activity.registers;
    args["static shared bytes"] = activity.static_shared_bytes;
    args["dynamic shared bytes"] = activity.dynamic_shared_bytes;
  } else {
    args["megabytes"] = static_cast<double>(activity.bytes) * 1e-6;
    if (activity.duration_ns > 0)
      args["gigabytes/s"] = static_cast<double>(activity.bytes) / static_cast<double>(activity.duration_ns);
  }
  return {{"name", activity.name},
          {"ph", "X"},
          {"pid", rank},
          {"tid", kFirstKernels + activity.stream},
          {"ts", microseconds(begin_ns)},
          {"dur", microseconds(activity.duration_ns)},
          {"args", args}};
}

Json json_of(const MemorySample& sample, int rank, std::int64_t time_ns) {
  Json bytes = Json::object();
  for (int tag = 0; tag < kMemoryTagCount; ++tag)
    bytes[std::string(name_of(static_cast<MemoryTag>(tag)))] = sample.bytes[static_cast<std::size_t>(tag)];
  return {{"name", "memory"}, {"ph", "C"}, {"pid", rank}, {"tid", 0}, {"ts", microseconds(time_ns)}, {"args", bytes}};
}

/// Each checkpoint is written by a thread of its own, one behind the other: they are one row.
std::set<int> checkpoint_threads(const Timeline& timeline) {
  std::set<int> threads;
  for (const TimelineEvent& event : timeline.events)
    if (event.name == kWritesCheckpoint) threads.insert(event.thread);
  return threads;
}

/// This rank's events, a line each, with a comma behind every one. Times begin at `first_ns`.
std::string lines_of(const Timeline& timeline, int rank, std::int64_t first_ns) {
  std::string text =
      text_of(name_of_row(rank, 0, "process_name", fmt::format("rank {}, {}", rank, host_name()))) + ",\n";
  std::set<int> threads;
  const std::set<int> writers = checkpoint_threads(timeline);
  for (TimelineEvent event : timeline.events) {
    const bool is_writer = writers.contains(event.thread);
    if (is_writer) event.thread = kCheckpointRow;
    const std::string name = is_writer ? "checkpoint writer" : fmt::format("thread {}", event.thread);
    if (threads.insert(event.thread).second)
      text += text_of(name_of_row(rank, event.thread, "thread_name", name)) + ",\n";
    text += text_of(json_of(event, rank, event.begin_ns - first_ns)) + ",\n";
  }
  std::set<int> streams;
  for (TimelineEvent event : timeline.device_events) {
    const int stream = event.thread;
    event.thread += kFirstStream;
    if (streams.insert(stream).second)
      text += text_of(name_of_row(rank, event.thread, "thread_name", fmt::format("GPU, stream {}", stream))) + ",\n";
    text += text_of(json_of(event, rank, event.begin_ns - first_ns)) + ",\n";
  }
  streams.clear();
  for (const DeviceActivity& activity : timeline.device_activities) {
    const int stream = activity.stream;
    if (streams.insert(stream).second)
      text += text_of(name_of_row(rank, kFirstKernels + stream, "thread_name",
                                  fmt::format("GPU, stream {}: kernels and copies", stream))) +
              ",\n";
    text += text_of(json_of(activity, rank, activity.begin_ns - first_ns)) + ",\n";
  }
  for (const MemorySample& sample : timeline.memory)
    text += text_of(json_of(sample, rank, sample.time_ns - first_ns)) + ",\n";
  return text;
}

}  // namespace

std::string trace_of(const Timeline& timeline, comm::ProcessGroup& group) {
  const std::int64_t offset = clock_offset_ns();
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TimelineEvent& event : timeline.events) first = std::min(first, event.begin_ns + offset);
  // Two ranks whose offsets were read at other moments agree on one where they share a host.
  const Tensor earliest = Tensor::from<std::int64_t>({first}, {1});
  group.all_reduce(Out(earliest), comm::ReduceOp::min);
  const std::vector<std::string> all =
      group.all_gather_bytes(lines_of(timeline, group.rank(), earliest.to_vector<std::int64_t>()[0] - offset));
  if (group.rank() != 0) return "";
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const std::string& lines : all) text += lines;
  text.resize(text.rfind(','));
  return text + "\n]}\n";
}

}  // namespace tandem::train
