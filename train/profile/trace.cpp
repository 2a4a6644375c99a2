// Writing trace events, and bringing those of all ranks together.
#include "tandem/train/profile/trace.h"

#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/process_info.h"
#include "tandem/train/profile/communication_rows.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;

/// Rows of a GPU's streams are numbered from here on, behind those of threads.
constexpr int kFirstStream = 1000;
constexpr int kCheckpointRow = kFirstStream - 1;
/// Kernels and copies have rows of their own: those of a graph's branches may run beside each other, and so lie neither
/// within a range nor outside of it.
constexpr int kFirstKernels = 2 * kFirstStream;
constexpr int kFirstCommunication = 3 * kFirstStream;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

/// The one by which most is not known, or none.
comm::ClockOffset worst_of(const std::vector<comm::ClockOffset>& clocks) {
  const auto worst = std::ranges::max_element(clocks, {}, &comm::ClockOffset::uncertainty_ns);
  return worst == clocks.end() ? comm::ClockOffset() : *worst;
}

/// Each checkpoint is written by a thread of its own, one behind the other: they are one row.
std::set<int> checkpoint_threads(const Timeline& timeline) {
  std::set<int> threads;
  for (const TimelineEvent& event : timeline.events)
    if (event.name == kWritesCheckpoint) threads.insert(event.thread);
  return threads;
}

Json args_of(const TimelineEvent& event) {
  Json args;
  if (!event.module.empty()) args["module"] = event.module;
  if (event.flops <= 0.0 && event.bytes <= 0.0) return args;
  args["gflop"] = event.flops * 1e-9;
  args["megabytes"] = event.bytes * 1e-6;
  if (event.duration_ns > 0) args["gflop/s"] = event.flops / static_cast<double>(event.duration_ns);
  return args;
}

Json args_of(const DeviceActivity& activity) {
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
  return args;
}

Json args_of(const RowEvent& event) {
  if (event.is_part) return {};
  Json args = {{"number", event.event->number}};
  if (!event.event->algorithm.empty()) args["algorithm"] = event.event->algorithm;
  if (event.step == nullptr) {
    args["bytes"] = event.event->bytes;
    return args;
  }
  const CommunicationStep& step = *event.step;
  for (const auto& [name, value] : {std::pair{"round", step.round}, std::pair{"peer", step.peer},
                                    std::pair{"chunk", step.chunk}, std::pair{"segment", step.segment}})
    if (value >= 0) args[name] = value;
  args["bytes"] = step.bytes;
  args["wait us"] = microseconds(step.wait_ns);
  args["copy us"] = microseconds(step.copy_ns);
  args["combine us"] = microseconds(step.reduce_ns);
  return args;
}

Json args_of(const MemorySample& sample) {
  Json bytes = Json::object();
  for (int tag = 0; tag < kMemoryTagCount; ++tag)
    bytes[std::string(name_of(static_cast<MemoryTag>(tag)))] = sample.bytes[static_cast<std::size_t>(tag)];
  return bytes;
}

/// A rank's events, a line each, with a comma behind every one. Times begin at `first_ns` of rank 0's clock.
class RankLines {
 public:
  RankLines(int rank, std::vector<comm::ClockOffset> clocks, std::int64_t first_ns)
      : rank_(rank), clocks_(std::move(clocks)), first_ns_(first_ns) {}

  void add_name(int row, std::string_view what, const std::string& name) {
    add({{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", row}, {"args", {{"name", name}}}});
  }
  void add_labels(const std::string& labels) {
    add({{"name", "process_labels"}, {"ph", "M"}, {"pid", rank_}, {"tid", 0}, {"args", {{"labels", labels}}}});
  }
  /// Both ends are moved by themselves, so that what lies within another still does.
  void add_span(int row, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns, const Json& args) {
    Json json = {{"name", name},
                 {"ph", "X"},
                 {"pid", rank_},
                 {"tid", row},
                 {"ts", time_of(begin_ns)},
                 {"dur", microseconds(of_rank_0(end_ns) - of_rank_0(begin_ns))}};
    if (!args.is_null()) json["args"] = args;
    add(json);
  }
  template <typename Event>
  void add_span(int row, const Event& event) {
    add_span(row, event.name, event.begin_ns, event.begin_ns + event.duration_ns, args_of(event));
  }
  void add_counter(const MemorySample& sample) {
    add({{"name", "memory"},
         {"ph", "C"},
         {"pid", rank_},
         {"tid", 0},
         {"ts", time_of(sample.time_ns)},
         {"args", args_of(sample)}});
  }
  std::string take() { return std::move(text_); }

 private:
  void add(const Json& json) { text_ += text_of(json) + ",\n"; }
  std::int64_t of_rank_0(std::int64_t time_ns) const { return comm::time_of_rank_0(clocks_, time_ns); }
  double time_of(std::int64_t time_ns) const { return microseconds(of_rank_0(time_ns) - first_ns_); }

  int rank_;
  std::vector<comm::ClockOffset> clocks_;
  std::int64_t first_ns_;
  std::string text_;
};

void add_threads(RankLines& lines, const Timeline& timeline) {
  std::set<int> threads;
  const std::set<int> writers = checkpoint_threads(timeline);
  for (const TimelineEvent& event : timeline.events) {
    const bool is_writer = writers.contains(event.thread);
    const int row = is_writer ? kCheckpointRow : event.thread;
    if (threads.insert(row).second)
      lines.add_name(row, "thread_name", is_writer ? "checkpoint writer" : fmt::format("thread {}", row));
    lines.add_span(row, event);
  }
}

template <typename Event>
void add_streams(RankLines& lines, const std::vector<Event>& events, int Event::* stream, int first_row,
                 std::string_view what) {
  std::set<int> streams;
  for (const Event& event : events) {
    const int row = first_row + event.*stream;
    if (streams.insert(row).second)
      lines.add_name(row, "thread_name", fmt::format("GPU, stream {}{}", event.*stream, what));
    lines.add_span(row, event);
  }
}

void add_communication(RankLines& lines, const Timeline& timeline) {
  const CommunicationRows rows = communication_rows(timeline.communication);
  for (std::size_t row = 0; row < rows.names.size(); ++row)
    lines.add_name(kFirstCommunication + static_cast<int>(row), "thread_name", rows.names[row]);
  for (const RowEvent& event : rows.events)
    lines.add_span(kFirstCommunication + event.row, event.name, event.begin_ns, event.end_ns, args_of(event));
}

std::string lines_of(const Timeline& timeline, RankLines lines, int rank, const comm::ClockOffset& clock) {
  lines.add_name(0, "process_name", fmt::format("rank {}, {}", rank, host_name()));
  lines.add_labels(fmt::format("clock {:+.3f} us, known within {:.3f} us", microseconds(clock.offset_ns),
                               microseconds(clock.uncertainty_ns)));
  add_threads(lines, timeline);
  add_streams(lines, timeline.device_events, &TimelineEvent::thread, kFirstStream, "");
  add_streams(lines, timeline.device_activities, &DeviceActivity::stream, kFirstKernels, ": kernels and copies");
  add_communication(lines, timeline);
  for (const MemorySample& sample : timeline.memory) lines.add_counter(sample);
  return lines.take();
}

/// Of all ranks, by rank 0's clock.
std::int64_t first_event(const Timeline& timeline, comm::ProcessGroup& group,
                         const std::vector<comm::ClockOffset>& clocks) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TimelineEvent& event : timeline.events)
    first = std::min(first, comm::time_of_rank_0(clocks, event.begin_ns));
  for (const CommunicationEvent& event : timeline.communication)
    first = std::min(first, comm::time_of_rank_0(clocks, event.begin_ns));
  const Tensor earliest = Tensor::from<std::int64_t>({first}, {1});
  group.all_reduce(Out(earliest), comm::ReduceOp::min);
  return earliest.to_vector<std::int64_t>().front();
}

}  // namespace

std::string trace_of(const Timeline& timeline, comm::ProcessGroup& group, std::vector<comm::ClockOffset> clocks) {
  if (clocks.empty()) clocks.push_back(compare_clocks(group));
  const std::int64_t first = first_event(timeline, group, clocks);
  const comm::ClockOffset clock = worst_of(clocks);
  const int rank = group.rank();
  const std::vector<std::string> all =
      group.all_gather_bytes(lines_of(timeline, RankLines(rank, clocks, first), rank, clock));
  const std::vector<std::string> told =
      group.all_gather_bytes(text_of({{"rank", rank},
                                      {"host", host_name()},
                                      {"offset us", microseconds(clock.offset_ns)},
                                      {"uncertainty us", microseconds(clock.uncertainty_ns)}}));
  if (rank != 0) return "";
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const std::string& lines : all) text += lines;
  text.resize(text.rfind(','));
  return text + fmt::format("\n],\"otherData\":{{\"clocks\":[\n{}\n]}}}}\n", fmt::join(told, ",\n"));
}

}  // namespace tandem::train
