// Communication in traces: rows without overlap, times by one clock, and what is told of each step.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/core/out.h"
#include "tandem/train/profile/communication_rows.h"
#include "tandem/train/profile/trace.h"
#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::train;

namespace {

using Json = nlohmann::json;

CommunicationStep message(std::string_view action, int peer, std::int64_t begin, std::int64_t wait,
                          std::int64_t copy = 0, std::int64_t reduce = 0) {
  return {.action = action,
          .round = 0,
          .peer = peer,
          .chunk = 2,
          .segment = 1,
          .bytes = 64,
          .begin_ns = begin,
          .wait_ns = wait,
          .copy_ns = copy,
          .reduce_ns = reduce};
}

CommunicationEvent operation(std::int64_t begin, std::int64_t duration, std::vector<CommunicationStep> steps) {
  return {.name = "all_reduce",
          .algorithm = "ring",
          .number = 7,
          .bytes = 256,
          .begin_ns = begin,
          .duration_ns = duration,
          .steps = std::move(steps)};
}

/// Events of one row lie within each other or beside each other. Times in microseconds, with three places.
void check_nesting(std::vector<Json> events) {
  std::ranges::stable_sort(events, [](const Json& a, const Json& b) {
    return std::pair(a["ts"].get<double>(), -a["dur"].get<double>()) <
           std::pair(b["ts"].get<double>(), -b["dur"].get<double>());
  });
  constexpr double kRounding = 0.0015;
  std::vector<double> ends;
  for (const Json& event : events) {
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    while (!ends.empty() && ends.back() <= begin + kRounding) ends.pop_back();
    INFO(event.dump());
    CHECK((ends.empty() || end <= ends.back() + kRounding));
    ends.push_back(end);
  }
}

std::map<std::pair<int, int>, std::vector<Json>> spans_by_row(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Json>> rows;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") rows[{event["pid"], event["tid"]}].push_back(event);
  return rows;
}

/// Of rank r's clock, which is `kError * r` ahead.
constexpr std::int64_t kError = 3'000'000'000;

}  // namespace

TEST_CASE("trace rows: what runs at the same time has rows of its own, and steps in shared memory lie within theirs") {
  CommunicationEvent bucket{.kind = CommunicationKind::bucket, .name = "bucket 0", .begin_ns = 0, .duration_ns = 3000};
  CommunicationEvent in_memory = operation(3000, 1000, {{.action = "reduce", .begin_ns = 3000, .reduce_ns = 800}});
  const std::vector<CommunicationEvent> events{
      bucket,
      operation(0, 2000,
                {message("send", 1, 0, 900), message("send", 1, 500, 900), message("send", 1, 900, 100),
                 message("reduce", 3, 100, 500, 200, 300)}),
      operation(1000, 2000, {}), in_memory};
  const CommunicationRows rows = communication_rows(events);
  CHECK(rows.names == std::vector<std::string>{"buckets", "collectives", "collectives (2)", "to rank 1",
                                               "to rank 1 (2)", "from rank 3"});
  const auto names_of = [&](int row) {
    std::vector<std::string> names;
    for (const RowEvent& event : rows.events)
      if (event.row == row) names.push_back(event.name);
    return names;
  };
  CHECK(names_of(1) == std::vector<std::string>{"all_reduce", "all_reduce", "reduce"});
  CHECK(names_of(3) == std::vector<std::string>{"send", "send"});
  CHECK(names_of(4) == std::vector<std::string>{"send"});
  CHECK(names_of(5) == std::vector<std::string>{"reduce", "wait", "copy", "combine"});
  const RowEvent& combine = rows.events.back();
  CHECK((combine.is_part && combine.begin_ns == 800 && combine.end_ns == 1100));
  CHECK(communication_rows({}).names.empty());
}

TEST_CASE("trace: steps tell round, peer, part, bytes and where their time went") {
  comm::ProcessGroup group(comm::make_self_backend());
  Timeline timeline;
  timeline.communication = {operation(5000, 9000, {message("reduce", 3, 6000, 5000, 2000, 1000)})};
  const Json trace = Json::parse(trace_of(timeline, group));
  std::map<std::string, Json> by_name;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") by_name[event["name"]] = event;
  CHECK(by_name.at("all_reduce")["ts"] == 0.0);
  CHECK(by_name.at("all_reduce")["args"] == Json{{"number", 7}, {"algorithm", "ring"}, {"bytes", 256}});
  const Json& step = by_name.at("reduce");
  CHECK((step["ts"] == 1.0 && step["dur"] == 8.0));
  CHECK(step["args"] == Json{{"number", 7},
                             {"algorithm", "ring"},
                             {"round", 0},
                             {"peer", 3},
                             {"chunk", 2},
                             {"segment", 1},
                             {"bytes", 64},
                             {"wait us", 5.0},
                             {"copy us", 2.0},
                             {"combine us", 1.0}});
  CHECK((by_name.at("copy")["ts"] == 6.0 && by_name.at("combine")["dur"] == 1.0));
  CHECK_FALSE(by_name.at("wait").contains("args"));
  const Json clock = trace["otherData"]["clocks"].at(0);
  CHECK((clock["rank"] == 0 && clock["offset us"] == 0.0 && clock["uncertainty us"] == 0.0));
}

TEST_CASE("trace: by one clock nothing arrives before it was sent, however far the ranks' clocks are apart") {
  constexpr int kRanks = 3;
  std::array<std::vector<comm::ClockOffset>, kRanks> clocks;
  start_timeline();
  comm::run_thread_ranks(kRanks, comm::native_options("threads", "ring"), [&](comm::ProcessGroup& group) {
    const int rank = group.rank();
    const auto now = [rank] { return detail::timeline_ns() + rank * kError; };
    std::vector<comm::ClockOffset>& mine = clocks[static_cast<std::size_t>(rank)];
    mine.push_back(comm::compare_clocks(group, now));
    const Tensor tensor = Tensor::full({100000}, 1.0);
    for (int i = 0; i < 3; ++i) group.all_reduce(Out(tensor));
    mine.push_back(comm::compare_clocks(group, now));
  });
  std::array<Timeline, kRanks> timelines;  // of each rank, by its clock
  for (CommunicationEvent event : stop_timeline().communication) {
    if (!event.name.starts_with("all_reduce")) continue;
    event.begin_ns += event.rank * kError;
    for (CommunicationStep& step : event.steps) step.begin_ns += event.rank * kError;
    timelines[static_cast<std::size_t>(event.rank)].communication.push_back(event);
  }
  std::string text;
  comm::run_thread_ranks(kRanks, [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const std::string mine = trace_of(timelines[rank], group, clocks[rank]);
    if (rank == 0) text = mine;
  });
  const Json trace = Json::parse(text);
  std::vector<double> uncertainty, offset;
  for (const Json& clock : trace["otherData"]["clocks"]) {
    uncertainty.push_back(clock["uncertainty us"]);
    offset.push_back(clock["offset us"]);
  }
  REQUIRE(offset.size() == kRanks);
  CHECK(offset[2] == Approx(-2e-3 * kError).margin(uncertainty[2]));

  std::map<std::string, std::pair<double, std::size_t>> sent;  // when, and by whom
  const auto key = [](const Json& args, int from, int to) {
    return fmt::format("{} {} {} {} {} {}", args["number"].dump(), args["round"].dump(), args["chunk"].dump(),
                       args["segment"].dump(), from, to);
  };
  const auto rows = spans_by_row(trace);
  for (const auto& [row, events] : rows) {
    check_nesting(events);
    for (const Json& event : events)
      if (event["name"] == "send")
        sent[key(event["args"], row.first, event["args"]["peer"])] = {event["ts"], static_cast<std::size_t>(row.first)};
  }
  std::size_t received = 0;
  for (const auto& [row, events] : rows) {
    for (const Json& event : events) {
      if (event["name"] != "receive" && event["name"] != "reduce") continue;
      const auto match = sent.find(key(event["args"], event["args"]["peer"], row.first));
      REQUIRE(match != sent.end());
      const auto [begin, from] = match->second;
      const double end = event["ts"].get<double>() + event["dur"].get<double>();
      INFO(event.dump() << " was sent at " << begin);
      CHECK(end + uncertainty[from] + uncertainty[static_cast<std::size_t>(row.first)] >= begin);
      ++received;
    }
  }
  CHECK(received == sent.size());
  CHECK(received >= 3 * kRanks * 2 * (kRanks - 1));
}
