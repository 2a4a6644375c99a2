// The picture of a step: which step, what of it, and what the page says.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/train/profile/trace.h"
#include "tandem/train/report/read_step.h"
#include "tandem/train/report/step_drawing.h"
#include "tandem/train/report/step_page.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::train;
using namespace tandem::train::report;
using tandem::test::ContainsText;

namespace {

constexpr std::int64_t kMs = 1'000'000;

/// A step from `begin`, of `unit` * 10: data, forward with a layer, backward beside a bucket, waiting, optimizer.
void add_step(Timeline& timeline, const std::string& name, int rank, std::int64_t begin, std::int64_t unit) {
  const auto add = [&](const std::string& range, std::int64_t from, std::int64_t to) {
    timeline.events.push_back({range, 0, begin + from * unit, (to - from) * unit, 0.0, 0.0});
  };
  add("data", 0, 1);
  timeline.events.push_back({"forward conv<1>", 0, begin + unit + 1000, 2 * unit - 2000, 0.0, 0.0});
  add("forward", 1, 3);
  add("backward", 3, 7);
  add("communication", 7, 8);
  add("optimizer", 8, 10);
  add(name, 0, 10);
  timeline.communication.push_back({.kind = CommunicationKind::bucket,
                                    .name = "bucket 0",
                                    .rank = rank,
                                    .bytes = 4096,
                                    .begin_ns = begin + 4 * unit,
                                    .duration_ns = 4 * unit});
  const auto message = [&](std::string_view action, std::int64_t from, std::int64_t wait, std::int64_t copy) {
    return CommunicationStep{.action = action,
                             .round = 0,
                             .peer = rank ^ 1,
                             .chunk = action == "send" ? rank : rank ^ 1,
                             .segment = 0,
                             .bytes = 2048,
                             .begin_ns = begin + from * unit,
                             .wait_ns = wait * unit,
                             .copy_ns = copy * unit};
  };
  timeline.communication.push_back({.name = "all_reduce average f32[1024]",
                                    .algorithm = "ring",
                                    .rank = rank,
                                    .number = 1 + begin / kMs,
                                    .bytes = 4096,
                                    .begin_ns = begin + 4 * unit,
                                    .duration_ns = 3 * unit,
                                    .steps = {message("send", 4, 1, 0), message("receive", 4, 1, 1)}});
}

/// Of two ranks: steps of 10, 30 and 20 ms.
std::string trace_of_steps(int ranks = 2) {
  std::string text;
  comm::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    Timeline timeline;
    add_step(timeline, "step 4", group.rank(), 100 * kMs, kMs);
    add_step(timeline, "step 5", group.rank(), 110 * kMs, 3 * kMs);
    add_step(timeline, "step 6", group.rank(), 140 * kMs, 2 * kMs);
    const std::string mine = trace_of(timeline, group);
    if (group.rank() == 0) text = mine;
  });
  return text;
}

const StepRow& row_of(const StepOfRank& rank, const std::string& name) {
  const auto found = std::ranges::find(rank.rows, name, &StepRow::name);
  REQUIRE(found != rank.rows.end());
  return *found;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("step page: the step that took the median time is read, with what lies within it") {
  const auto step = read_step(trace_of_steps());
  REQUIRE(step);
  CHECK((step->name == "step 6" && step->recorded == 3 && step->ranks.size() == 2));
  CHECK(step->end == Approx(20.0));
  const StepOfRank& rank = step->ranks[1];
  CHECK(rank.rank == 1);
  std::vector<std::pair<std::string, int>> work;
  for (const StepSpan& span : rank.work)
    if (span.name != "step 6") work.emplace_back(span.name, span.depth);
  CHECK(work == std::vector<std::pair<std::string, int>>{{"data", 0},
                                                         {"forward", 0},
                                                         {"forward conv<1>", 1},
                                                         {"backward", 0},
                                                         {"communication", 0},
                                                         {"optimizer", 0}});
  const StepSpan& bucket = row_of(rank, "buckets").spans.at(0);
  CHECK((bucket.begin == Approx(8.0) && bucket.end == Approx(16.0) && bucket.bytes == 4096.0));
  const StepRow& from = row_of(rank, "from rank 0");
  CHECK((from.spans.size() == 3 && from.spans[0].name == "receive" && from.spans[0].chunk == 0));
  CHECK((from.spans[0].wait == Approx(2.0) && from.spans[0].copy == Approx(2.0) && from.spans[1].depth == 1));
  const Exchange exchange = largest_exchange(*step);
  CHECK((exchange.number == 141 && exchange.algorithm == "ring"));
  CHECK((exchange.begin == Approx(8.0) && exchange.end == Approx(12.4)));
}

TEST_CASE("step page: it shows all ranks and the exchange, tells where the time went, and loads nothing") {
  const std::string page = step_page(trace_of_steps());
  CHECK_THAT(page, ContainsText("<h1>Step 6 on 2 ranks</h1>"));
  CHECK_THAT(page, ContainsText("20.000 ms; of 3 recorded steps the one that took the median time on rank 0"));
  CHECK_THAT(page, ContainsText("Its largest exchange: all_reduce average f32[1024] by ring"));
  CHECK_THAT(page, ContainsText("forward conv&lt;1&gt;"));
  // Data, forward, backward and optimizer; the bucket's 8 ms, of which 2 were waited for.
  for (const char* const cell : {">20.000<", ">18.000<", ">2.000<", ">8.000<", ">75 %<"}) CHECK(count(page, cell) == 2);
  CHECK(count(page, "<svg") == 4);  // wide and narrow
  for (const char* const text : {"<script", "http:", "https:", "nan", "inf\"", "src="}) {
    INFO(text);
    CHECK(page.find(text) == page.npos);
  }
}

TEST_CASE("step page: of many ranks not all are drawn, and no step is no page") {
  CHECK_THAT(step_page(trace_of_steps(1)), ContainsText("Step 6 on 1 rank<"));
  CHECK_THAT(step_page(trace_of_steps(9)), ContainsText("Drawn are 8 of 9 ranks; the trace has all."));
  CHECK(step_page("{\"traceEvents\":[\n\n],\"otherData\":{\"clocks\":[]}}").empty());
  CHECK(step_page("").empty());
}
