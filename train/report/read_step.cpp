// Which step, and what lies within it. A trace has a line for each event.
#include "tandem/train/report/read_step.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace tandem::train::report {

namespace {

using Json = nlohmann::json;

/// Rows behind those of threads: streams of a GPU, kernels, communication.
constexpr int kFirstStream = 1000;

struct Event {
  int rank = 0, row = 0;
  StepSpan span;
};

double milliseconds(const Json& json, const char* key) { return 1e-3 * json.value(key, 0.0); }

StepSpan span_of(const Json& json) {
  StepSpan span{.name = json.value("name", ""), .begin = milliseconds(json, "ts")};
  span.end = span.begin + milliseconds(json, "dur");
  const Json args = json.value("args", Json::object());
  span.module = args.value("module", "");
  span.bytes = args.value("bytes", 0.0);
  span.wait = milliseconds(args, "wait us");
  span.copy = milliseconds(args, "copy us");
  span.combine = milliseconds(args, "combine us");
  span.number = args.value("number", std::int64_t{-1});
  span.round = args.value("round", -1);
  span.peer = args.value("peer", -1);
  span.chunk = args.value("chunk", -1);
  span.segment = args.value("segment", -1);
  span.algorithm = args.value("algorithm", "");
  return span;
}

template <typename Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with(',')) line.remove_suffix(1);
    if (line.starts_with("{\"name\"")) visit(line);
  }
}

std::map<std::string, std::map<int, StepSpan>> steps_of(std::string_view trace) {
  std::map<std::string, std::map<int, StepSpan>> steps;  // by name and rank
  for_each_line(trace, [&](std::string_view line) {
    if (!line.starts_with("{\"name\":\"step ")) return;
    const Json json = Json::parse(line);
    steps[json.value("name", "")][json.value("pid", 0)] = span_of(json);
  });
  return steps;
}

/// By the time on the first rank.
std::string median_step(const std::map<std::string, std::map<int, StepSpan>>& steps) {
  std::vector<std::pair<double, std::string>> times;
  for (const auto& [name, of_rank] : steps) {
    const StepSpan& first = of_rank.begin()->second;
    times.emplace_back(first.end - first.begin, name);
  }
  std::ranges::sort(times);
  return times[times.size() / 2].second;
}

/// Depths of spans of one row, which are brought into the order of their beginnings.
void find_depths(std::vector<StepSpan>& spans) {
  constexpr double kRounding = 2e-6;
  std::ranges::stable_sort(spans, [](const StepSpan& a, const StepSpan& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<double> ends;
  for (StepSpan& span : spans) {
    while (!ends.empty() && ends.back() <= span.begin + kRounding) ends.pop_back();
    span.depth = static_cast<int>(ends.size());
    ends.push_back(span.end);
  }
}

using Rows = std::map<std::pair<int, int>, StepRow>;  // by rank and number

StepOfRank* find_rank(StepTrace& step, int rank) {
  const auto found = std::ranges::find(step.ranks, rank, &StepOfRank::rank);
  return found == step.ranks.end() ? nullptr : &*found;
}

/// What lies at least partly within the step on its rank. Times are moved to those of the step.
Rows rows_of(std::string_view trace, StepTrace& step, double first) {
  Rows rows;
  for_each_line(trace, [&](std::string_view line) {
    const Json json = Json::parse(line);
    const int rank = json.value("pid", 0), row = json.value("tid", 0);
    if (json.value("name", "") == "thread_name") rows[{rank, row}].name = json["args"].value("name", "");
    const StepOfRank* const whole = find_rank(step, rank);
    if (json.value("ph", "") != "X" || whole == nullptr) return;
    StepSpan span = span_of(json);
    span.begin -= first;
    span.end -= first;
    if (span.end > whole->begin && span.begin < whole->end && span.name != step.name)
      rows[{rank, row}].spans.push_back(std::move(span));
  });
  return rows;
}

/// The thread that trains, and the rows behind those of threads.
void add_rows(StepTrace& step, Rows rows) {
  for (auto& [place, row] : rows) {
    const auto& [rank, number] = place;
    if (row.spans.empty()) continue;
    find_depths(row.spans);
    StepOfRank& mine = *find_rank(step, rank);
    if (number >= kFirstStream) {
      mine.rows.push_back(std::move(row));
    } else if (std::ranges::any_of(row.spans, [](const StepSpan& span) { return span.name == "forward"; })) {
      mine.work = std::move(row.spans);
    }
  }
}

void add_clocks(StepTrace& step, std::string_view trace) {
  const std::size_t clocks = trace.rfind("\"otherData\":");
  if (clocks == trace.npos) return;
  const Json other = Json::parse(fmt::format("{{{}", trace.substr(clocks)));
  for (const Json& clock : other["otherData"]["clocks"])
    if (StepOfRank* const mine = find_rank(step, clock.value("rank", -1)); mine != nullptr)
      mine->uncertainty = milliseconds(clock, "uncertainty us");
}

}  // namespace

std::optional<StepTrace> read_step(std::string_view trace) {
  const auto steps = steps_of(trace);
  if (steps.empty()) return std::nullopt;
  StepTrace step{.name = median_step(steps), .recorded = static_cast<int>(steps.size())};
  const std::map<int, StepSpan>& of_rank = steps.at(step.name);
  double first = of_rank.begin()->second.begin;
  for (const auto& [rank, span] : of_rank) first = std::min(first, span.begin);
  for (const auto& [rank, span] : of_rank) {
    step.ranks.push_back({.rank = rank, .begin = span.begin - first, .end = span.end - first});
    step.end = std::max(step.end, span.end - first);
  }
  add_rows(step, rows_of(trace, step, first));
  add_clocks(step, trace);
  return step;
}

}  // namespace tandem::train::report
