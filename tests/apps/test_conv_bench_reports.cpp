// conv_bench: its reports, and what is left of a run that ends early.
#include "apps/conv_bench/bench.h"
#include "apps/conv_bench/program.h"
#include "apps/conv_bench/reports.h"
#include "apps/measure/quantile.h"
#include "tests/apps/conv_bench_support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <set>
#include <stdexcept>

using namespace tandem::conv_bench;
using tandem::test::ContainsText;
using tandem::test::read_bytes;
using tandem::test::TemporaryDirectory;

TEST_CASE("conv_bench: reports hold what was measured") {
  BenchSettings settings = small_settings({find_contestant("ours"), find_contestant("reference")});
  settings.contestants[1].is_library = true;
  settings.caches = {Cache::hot, Cache::cold};
  const Report report = run_bench(settings, [](const std::vector<Result>&, const Report&) {});
  REQUIRE(report.results.size() == 6);
  const auto ratio = ratio_to_library(report.results[0], report.results);
  REQUIRE(ratio.has_value());
  CHECK(*ratio == Approx(tandem::apps::median(report.results[1].hot) / tandem::apps::median(report.results[0].hot)));
  CHECK(*ratio_to_library(report.results[1], report.results) == Approx(1.0));

  const auto parsed = nlohmann::json::parse(json_report(settings, report));
  REQUIRE(parsed["results"].size() == 6);
  const auto& first = parsed["results"][0];
  CHECK((first["impl"] == "ours" && first["pass"] == "fwd" && first["dtype"] == "f32" && first["layer"]["c"] == 5));
  CHECK(first["hot_seconds"]["groups"].size() == 3);
  CHECK(first["cold_seconds"]["median"].get<double>() > 0.0);
  CHECK(first["ratio_to_best_library"].get<double>() == Approx(*ratio));

  const std::string picture = svg_report(settings, report.results);
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = picture.find(text); at != std::string::npos; at = picture.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("<circle") == 6);
  CHECK(count("<title>") == 12);
  CHECK(count("nan") == 0);
  CHECK(count("inf") == 0);
  CHECK(picture.find("</svg>") != std::string::npos);
}

TEST_CASE("conv_bench: the picture's axes can be read, and no two implementations have one colour") {
  BenchSettings settings;
  settings.ceilings = {.flops_f32 = 480e9, .flops_half = 480e9, .bandwidth = 50e9, .source = "given"};
  std::vector<Result> results;
  for (int i = 0; i < 20; ++i) {
    Result result;
    result.layer = small_layer();
    result.impl = fmt::format("implementation {}", i);
    result.work = {.flops = 2e8, .done_flops = 2e8, .bytes = 1e7};
    result.hot = {1e-3 * (1.0 + 0.1 * i)};
    results.push_back(result);
  }
  const std::string picture = svg_report(settings, results);
  for (const char* const tick : {">10</text>", ">20</text>", ">100</text>", ">200</text>", ">500</text>"})
    CHECK_THAT(picture, ContainsText(tick));  // x: 20 FLOP per byte; y: 69 to 200 GFLOP/s under the roof
  CHECK_THAT(picture, ContainsText(">480 GFLOP/s</text>"));
  std::set<std::string> colours;
  for (std::size_t at = picture.find("<circle"); at != std::string::npos; at = picture.find("<circle", at + 1))
    colours.insert(picture.substr(picture.find("fill=", at), 14));
  CHECK(colours.size() == 20);
}

TEST_CASE("conv_bench: a process that is ended leaves the layers that it has timed") {
  const TemporaryDirectory folder;
  Contestant fatal = find_contestant("ours");
  fatal.forward = [right = fatal.forward](Workload& workload) {
    if (workload.layer.c == 4) throw std::runtime_error("the end");
    right(workload);
  };
  BenchSettings settings = small_settings({fatal});
  settings.layers.push_back({parse_shape("1,4,5,5,4,1,1,1,0").layer, {1}});
  settings.json_file = folder / "some.json";
  settings.missing = {"cudnn: was not found"};
  settings.ceilings = {1e5, 1e5, 1e15, "given"};
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  CHECK_THROWS_WITH(run_program(settings, out, out), "the end");
  std::fclose(out);
  const auto parsed = nlohmann::json::parse(read_bytes(settings.json_file));
  CHECK(parsed["complete"] == false);
  CHECK(parsed["results"].size() == 3);
  // The ceilings are those that the floors come from: raised by what was timed before the end.
  const double ceiling = parsed["ceilings"]["flops_f32"];
  CHECK(parsed["ceilings"]["source"] == "given; f32 raised to what ours reached");
  for (const auto& result : parsed["results"])
    CHECK(result["done_flops"].get<double>() / result["hot_seconds"]["median"].get<double>() <=
          ceiling * (1.0 + 1e-12));
  CHECK(parsed["skipped"] == std::vector<std::string>{"cudnn: was not found"});
  CHECK_THAT(read_bytes(folder / "out"), ContainsText("left out: cudnn: was not found"));
}
