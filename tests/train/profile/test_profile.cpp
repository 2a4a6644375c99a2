// Profiles of steps: the trace file, the table, and which steps are profiled.
#include "tandem/comm/backends/backend.h"
#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/profile/op_table.h"
#include "tandem/train/profile/profile_json.h"
#include "tandem/train/profile/rank_table.h"
#include "tandem/train/profile/step_window.h"
#include "tandem/train/profile/trace.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace tandem;
using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMs = 1'000'000;

/// step [0, 10) has conv [1, 4) with inner [2, 3) and conv [5, 9); another thread works [0, 2).
Timeline small_timeline(std::int64_t start_ns = 0) {
  Timeline timeline;
  const auto event = [&](std::string name, int thread, std::int64_t begin, std::int64_t length, double flops = 0.0) {
    timeline.events.push_back({std::move(name), thread, start_ns + begin * kMs, length * kMs, flops, flops / 2});
  };
  event("inner", 0, 2, 1);
  event("conv", 0, 1, 3, 4e6);
  event("conv", 0, 5, 4, 8e6);
  event("step", 0, 0, 10);
  event("loader", 1, 0, 2);
  MemorySample sample;
  sample.time_ns = start_ns + 4 * kMs;
  sample.bytes[static_cast<std::size_t>(MemoryTag::workspace)] = 4096;
  timeline.memory.push_back(sample);
  timeline.peak_bytes = 3 << 20;
  timeline.largest_at_peak.push_back({2 << 20, MemoryTag::activations, "conv"});
  timeline.largest_at_peak.push_back({1024, MemoryTag::data, ""});
  return timeline;
}

}  // namespace

TEST_CASE("profile: times of ranges are without the ranges inside them") {
  std::map<std::string, OpTotals> by_name;
  for (const OpTotals& totals : op_totals(small_timeline().events)) by_name[totals.name] = totals;
  CHECK(by_name.size() == 4);
  CHECK(by_name["step"].seconds == Approx(3e-3));
  CHECK(by_name["conv"].seconds == Approx(6e-3));
  CHECK(by_name["conv"].count == 2);
  CHECK(by_name["conv"].flops == 12e6);
  CHECK(by_name["inner"].seconds == Approx(1e-3));
  CHECK(by_name["loader"].seconds == Approx(2e-3));
  CHECK(op_totals(small_timeline().events).front().name == "conv");
  CHECK(op_totals({}).empty());
}

TEST_CASE("profile: the table has rates, shares of the limits, and the largest storages at the peak") {
  const std::string table = op_table(small_timeline(), 2, {.flops_per_second = 8e9, .bytes_per_second = 1e9}, 3);
  INFO(table);
  // 12e6 operations in 6 ms are 2 GFLOP/s, a quarter of 8; a half of that in bytes.
  CHECK_THAT(table, ContainsText("conv       1.0      3.000  50.0 %      2.0 (25 %)     1.0 (100 %)"));
  CHECK_THAT(table, ContainsText("(1 more)"));
  CHECK_THAT(table, ContainsText("peak memory 3.0 MiB, of which\n"));
  CHECK_THAT(table, ContainsText("2.0 MiB  activations  conv\n"));
  CHECK_THAT(table, ContainsText("1.0 KiB  data         outside of any range\n"));
  CHECK_THAT(op_table({}, 0), ContainsText("peak memory 0 bytes"));
}

TEST_CASE("profile: the largest storages are named by tensor and shape, or by shape and the range that made them") {
  Timeline timeline;
  timeline.peak_bytes = 4096;
  timeline.largest_at_peak.push_back({2048, MemoryTag::parameters, "", "conv1.weight", "f32[16, 32]"});
  timeline.largest_at_peak.push_back({1024, MemoryTag::gradients, "backward conv2d", "", "f32[256]"});
  const std::string table = op_table(timeline, 1);
  INFO(table);
  CHECK_THAT(table, ContainsText("2.0 KiB  parameters   conv1.weight f32[16, 32]\n"));
  CHECK_THAT(table, ContainsText("1.0 KiB  gradients    f32[256], backward conv2d\n"));
}

TEST_CASE("profile: of a GPU its own times make the rates, of limits that are called nominal") {
  Timeline timeline = small_timeline();
  timeline.device_events.push_back({"relu", 0, 7 * kMs, 2 * kMs, 0.0, 4e6});
  const std::string table = op_table(timeline, 1, {8e9, 4e9, true});
  INFO(table);
  CHECK_THAT(table, ContainsText("on the GPU:\n"));
  CHECK_THAT(table, ContainsText("2.0 (50 %)"));  // 4 MB in 2 ms, of 4 GB/s
  CHECK_THAT(table,
             ContainsText("nominal limits, which follow from clocks and widths and were not measured: 8 GFLOP/s"));
  const std::string host = table.substr(table.find("on the host:"));
  CHECK_THAT(host, ContainsText("conv"));
  CHECK_THAT(host, !ContainsText("GFLOP/s"));
}

TEST_CASE("profile: the table of all ranks has the slowest and the fastest rank of each range") {
  std::vector<std::string> tables(3);
  test::run_thread_ranks(3, [&](comm::ProcessGroup& group) {
    Timeline timeline;
    const std::int64_t ms = group.rank() == 1 ? 8 : 2 + group.rank();  // 2, 8 and 4
    timeline.events.push_back({"forward", 0, 0, ms * kMs, 0.0, 0.0});
    if (group.rank() == 2) timeline.events.push_back({"write", 0, 20 * kMs, kMs, 0.0, 0.0});
    tables[static_cast<std::size_t>(group.rank())] = rank_table(timeline, 2, group, 5);
  });
  INFO(tables[0]);
  CHECK((tables[1].empty() && tables[2].empty()));
  CHECK_THAT(tables[0], ContainsText("forward                  2.333     4.000 (rank 1)     1.000 (rank 0)\n"));
  CHECK_THAT(tables[0], ContainsText("write                    0.167     0.500 (rank 2)     0.000 (rank 0)\n"));
  CHECK(tables[0].find("forward") < tables[0].find("write"));

  test::run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Timeline timeline;
    DeviceActivity activity;
    activity.name = "kernel";
    activity.op = "conv";
    activity.duration_ns = (1 + group.rank()) * kMs;
    timeline.device_activities.push_back(activity);
    timeline.device_events.push_back({"conv", 0, 0, 9 * kMs, 0.0, 0.0});
    tables[static_cast<std::size_t>(group.rank())] = rank_table(timeline, 1, group, 5);
  });
  INFO(tables[0]);
  CHECK_THAT(tables[0], ContainsText("conv                     1.500     2.000 (rank 1)     1.000 (rank 0)\n"));
}

TEST_CASE("profile: streams of a GPU have rows of their own in the trace") {
  comm::ProcessGroup group(comm::make_self_backend());
  Timeline timeline = small_timeline();
  timeline.device_events.push_back({"conv", 1, 3 * kMs, 2 * kMs, 4e6, 0.0});
  const Json trace = Json::parse(trace_of(timeline, group));
  int rows = 0, events = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["tid"] != 1001) continue;
    if (event["ph"] == "M") CHECK(event["args"]["name"] == "GPU, stream 1");
    if (event["ph"] == "X") CHECK(event["ts"].get<double>() == Approx(3000.0));
    ++(event["ph"] == "M" ? rows : events);
  }
  CHECK((rows == 1 && events == 1));
}

namespace {

/// small_timeline() on a GPU that CUPTI watched: conv's two calls took [2, 4), with a pause of a millisecond, and [6,
/// 8).
Timeline watched_timeline() {
  Timeline timeline = small_timeline();
  timeline.device_times_from = "CUPTI 13.0.1 (libcupti.so.13); clocks agree within 0.4 us";
  const auto add = [&](ActivityKind kind, std::string name, std::string op, std::int64_t begin, std::int64_t length) {
    DeviceActivity activity;
    activity.kind = kind;
    activity.name = std::move(name);
    activity.op = std::move(op);
    activity.stream = 1;
    activity.begin_ns = begin * kMs / 2;
    activity.duration_ns = length * kMs / 2;
    timeline.device_activities.push_back(activity);
  };
  add(ActivityKind::kernel, "void tandem::(anonymous namespace)::tile<float, 4>(float const*, int)", "conv", 4, 1);
  add(ActivityKind::kernel, "void tandem::(anonymous namespace)::tile<float, 4>(float const*, int)", "conv", 7, 1);
  add(ActivityKind::kernel, "void tandem::(anonymous namespace)::tile<float, 4>(float const*, int)", "conv", 12, 4);
  add(ActivityKind::copy, "copy host to device", "", 0, 2);
  timeline.device_activities[0].grid = {64, 2, 1};
  timeline.device_activities[0].block = {256, 1, 1};
  timeline.device_activities[0].registers = 40;
  timeline.device_activities[0].dynamic_shared_bytes = 1024;
  timeline.device_activities.back().bytes = 5'000'000;
  timeline.device_events.push_back({"conv", 1, 2 * kMs, 2 * kMs, 4e6, 2e6});
  timeline.device_events.push_back({"conv", 1, 6 * kMs, 2 * kMs, 8e6, 4e6});
  return timeline;
}

}  // namespace

TEST_CASE("profile: by CUPTI an op's time is that of its kernels, without the pauses between them") {
  const std::vector<OpTotals> ops = device_op_totals(watched_timeline());
  REQUIRE(ops.size() == 2);
  CHECK((ops[0].name == "conv" && ops[0].count == 2 && ops[0].flops == 12e6 && ops[0].bytes == 6e6));
  CHECK(ops[0].seconds == Approx(3e-3));
  CHECK(ops[1].name == "outside of any range");
  CHECK(ops[1].seconds == Approx(1e-3));

  const std::string table = op_table(watched_timeline(), 2, {.flops_per_second = 8e9, .bytes_per_second = 4e9});
  INFO(table);
  CHECK_THAT(table,
             ContainsText("times of the GPU are from CUPTI 13.0.1 (libcupti.so.13); clocks agree within 0.4 us\n"));
  // 12e6 operations in 3 ms, and half as many bytes.
  CHECK_THAT(table, ContainsText("conv                     1.0      1.500  75.0 %      4.0 (50 %)      2.0 (50 %)\n"));
  CHECK_THAT(table, ContainsText("tile<float, 4>          1.5      1.500  75.0 %               -               -\n"));
  CHECK_THAT(table, ContainsText("copy host to device     0.5      0.500  25.0 %               -     5.0 (125 %)\n"));
  CHECK_THAT(table, ContainsText("conv       1.0      3.000  50.0 %        1.500\n"));
  CHECK_THAT(table, ContainsText("step       0.5      1.500  25.0 %            -\n"));
}

TEST_CASE("profile: a GPU of which nothing was told is named with the reason") {
  Timeline timeline = small_timeline();
  timeline.device_times_from = "CUPTI 13.0.1 (libcupti.so.13), which gave them not out: for a reason";
  CHECK_THAT(op_table(timeline, 1), ContainsText("no times of the GPU; they were to come from CUPTI 13.0.1 ("));
  CHECK_THAT(op_table(timeline, 1), ContainsText("for a reason\nrange "));
  CHECK_THAT(op_table(timeline, 1), !ContainsText("GFLOP/s"));
}

TEST_CASE("profile: kernels and copies have rows of their own in the trace, and tell how they were launched") {
  comm::ProcessGroup group(comm::make_self_backend());
  const Json trace = Json::parse(trace_of(watched_timeline(), group));
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"]) {
    if (event["tid"] != 2001) continue;
    if (event["ph"] == "M") CHECK(event["args"]["name"] == "GPU, stream 1: kernels and copies");
    if (event["ph"] == "X") events.push_back(event);
  }
  REQUIRE(events.size() == 4);
  CHECK(events[0]["name"] == "void tandem::(anonymous namespace)::tile<float, 4>(float const*, int)");
  CHECK(events[0]["ts"].get<double>() == Approx(2000.0));
  CHECK(events[0]["dur"].get<double>() == Approx(500.0));
  CHECK(events[0]["args"] == Json{{"op", "conv"},
                                  {"grid", {64, 2, 1}},
                                  {"block", {256, 1, 1}},
                                  {"registers", 40},
                                  {"static shared bytes", 0},
                                  {"dynamic shared bytes", 1024}});
  CHECK(events[3]["args"]["op"] == "");
  CHECK(events[3]["args"]["megabytes"].get<double>() == Approx(5.0));
  CHECK(events[3]["args"]["gigabytes/s"].get<double>() == Approx(5.0));
}

TEST_CASE("profile: JSON has the GPU's time of ops, its kernels, and who told them") {
  const Json json = Json::parse(profile_json(watched_timeline(), 2));
  CHECK(json["device_times_from"] == "CUPTI 13.0.1 (libcupti.so.13); clocks agree within 0.4 us");
  CHECK(json["ops"][0]["name"] == "conv");
  CHECK(json["ops"][0]["seconds"].get<double>() == Approx(3e-3));
  REQUIRE(json["kernels"].size() == 2);
  CHECK(json["kernels"][0]["name"] == "tile<float, 4>");
  CHECK(json["kernels"][0]["calls"] == 3);
  CHECK(json["kernels"][1]["bytes"] == 5e6);
  const Json on_cpu = Json::parse(profile_json(small_timeline(), 2));
  CHECK_FALSE((on_cpu.contains("kernels") || on_cpu.contains("device_times_from")));
}

TEST_CASE("profile: names of kernels are shown without namespaces, parameters and what is returned") {
  CHECK(short_kernel_name("void tandem::kernels::(anonymous namespace)::relu<float, 4>(float const*, int)") ==
        "relu<float, 4>");
  CHECK(short_kernel_name("void cutlass::Kernel2<cutlass_80::Op<(int)3>, a::b>(cutlass_80::Params)") ==
        "Kernel2<cutlass_80::Op<(int)3>, a::b>");
  CHECK(short_kernel_name("scale(float*)") == "scale");
  CHECK(short_kernel_name("ampere_sgemm_128x64_nn") == "ampere_sgemm_128x64_nn");
  CHECK(short_kernel_name("") == "");
  CHECK(short_kernel_name("ends in a space ") == "ends in a space ");
}

TEST_CASE("profile: the threads that write checkpoints are one row with a name") {
  comm::ProcessGroup group(comm::make_self_backend());
  Timeline timeline = small_timeline();
  for (const int thread : {2, 3}) {
    timeline.events.push_back({"copy", thread, thread * kMs, kMs / 4, 0.0, 0.0});
    timeline.events.push_back({kWritesCheckpoint, thread, thread * kMs, kMs / 2, 0.0, 0.0});
  }
  const Json trace = Json::parse(trace_of(timeline, group));
  std::map<std::string, int> rows;  // by name
  std::map<int, int> events;        // by row
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") rows.emplace(event["args"]["name"], event["tid"]);
    if (event["ph"] == "X") ++events[event["tid"]];
  }
  REQUIRE(rows.size() == 3);
  CHECK((rows.at("thread 0") == 0 && rows.at("thread 1") == 1 && events.size() == 3));
  CHECK(events.at(rows.at("checkpoint writer")) == 4);
}

TEST_CASE("profile: JSON has the totals, and memory over time without losing a peak") {
  Timeline timeline = small_timeline();
  timeline.memory.clear();
  const auto workspace = static_cast<std::size_t>(MemoryTag::workspace);
  for (int i = 999; i >= 0; --i) {  // threads may tell them in any order
    MemorySample sample;
    sample.time_ns = 7 * kMs + i * kMs;
    sample.bytes[workspace] = i == 503 ? 1 << 20 : i;
    timeline.memory.push_back(sample);
  }
  const Json json = Json::parse(profile_json(timeline, 2, {.flops_per_second = 8e9}));
  CHECK(json["steps"] == 2);
  CHECK(json["flops_per_second"] == 8e9);
  CHECK(!json.contains("bytes_per_second"));
  CHECK(json["ops"][0]["name"] == "conv");
  CHECK(json["ops"][0]["seconds"].get<double>() == Approx(6e-3));
  CHECK(json["ops"][0]["flops"] == 12e6);
  CHECK(json["seconds"].get<double>() == Approx(12e-3));
  CHECK(json["largest_at_peak"][0]["bytes"] == 2 << 20);
  CHECK(json["largest_at_peak"][0]["kind"] == "activations");
  CHECK(json["largest_at_peak"][0]["made_in"] == "conv");
  const auto times = json["memory"]["seconds"].get<std::vector<double>>();
  const auto bytes = json["memory"]["bytes"]["workspace"].get<std::vector<std::int64_t>>();
  CHECK(json["memory"]["bytes"].size() == 1);
  REQUIRE((times.size() == bytes.size() && times.size() <= 240 && times.size() > 120));
  CHECK(std::ranges::is_sorted(times));
  const auto peak = std::ranges::max_element(bytes);
  CHECK(*peak == 1 << 20);
  CHECK(times[static_cast<std::size_t>(peak - bytes.begin())] ==
        Approx(0.503 - 0.001 * static_cast<double>(bytes.front())));
  CHECK(Json::parse(profile_json({}, 0))["memory"]["seconds"].empty());
}

TEST_CASE("profile: the trace of all ranks is JSON whose events nest and begin at 0") {
  const int ranks = GENERATE(1, 3);
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  test::run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    texts[static_cast<std::size_t>(group.rank())] = trace_of(small_timeline((5 + 7 * group.rank()) * kMs), group);
  });
  for (int rank = 1; rank < ranks; ++rank) CHECK(texts[static_cast<std::size_t>(rank)].empty());
  const Json trace = Json::parse(texts[0]);
  std::map<int, int> events, counters;
  for (const Json& event : trace["traceEvents"]) {
    const int rank = event["pid"];
    if (event["ph"] == "C") ++counters[rank];
    if (event["ph"] != "X") continue;
    ++events[rank];
    if (event["name"] == "step") CHECK(event["ts"].get<double>() == Approx(7000.0 * rank).margin(500.0));
    if (event["name"] == "conv")
      CHECK(event["args"]["gflop/s"].get<double>() == Approx(event["dur"] == 3000.0 ? 4.0 / 3.0 : 2.0));
    CHECK(event["dur"].get<double>() > 0.0);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(events[rank] == 5);
    CHECK(counters[rank] == 1);
  }
}

TEST_CASE("profile: names that are no UTF-8, and ranks without events, leave the trace readable") {
  test::run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Timeline timeline;
    if (group.rank() == 1) timeline.events.push_back({"\xff\"<\n", 0, 5, 7, 0.0, 0.0});
    const std::string text = trace_of(timeline, group);
    if (group.rank() == 0) CHECK(Json::parse(text)["traceEvents"].size() == 6);
  });
}

TEST_CASE("profile: steps are read from text") {
  CHECK(parse_step_window("steps=10:15") == StepWindow{10, 15});
  CHECK(parse_step_window("steps=1:1") == StepWindow{1, 1});
  CHECK(to_string(StepWindow{10, 15}) == "steps=10:15");
  for (const char* text :
       {"", "steps", "steps=", "steps=3", "steps=a:b", "steps=3:", "steps= 3:4", "10:15", "steps=1:2:3"})
    CHECK_THROWS_WITH(parse_step_window(text), ContainsText("as in steps=10:15"));
  CHECK_THROWS_WITH(parse_step_window("steps=0:4"), ContainsText("count from 1"));
  CHECK_THROWS_WITH(parse_step_window("steps=5:4"), ContainsText("cannot be before the first"));
  CHECK_THROWS_WITH(parse_step_window("steps=1:5000"), ContainsText("at most 1000 steps"));
}
