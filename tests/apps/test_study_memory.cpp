// What folders of runs tell, of which no program has made one.
#include "apps/study/memory.h"
#include "apps/study/reading.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <string>

using namespace tandem;
using namespace tandem::study;

namespace {

Plan plan_of(const std::string& varied) {
  PlanOptions options;
  options.seeds = 1;
  return make_plan(test::study_of("title = \"T\"\n" + varied), options);
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a run that was ended by its time limit failed, and one whose study was stopped goes on") {
  const test::TemporaryDirectory runs;
  const Plan plan = plan_of("[grid]\nlr = [0.1]\n");
  const std::filesystem::path folder = runs.path() / plan.runs[0].folder;
  write(folder / "environment.json", "{\"state\": \"stopped\"}");
  write(folder / kOutputFile, "error: it did not end within 3 s (--timeout)\n");
  CHECK(find_run(runs.path().string(), plan, plan.runs[0]).outcome == RunOutcome::interrupted);
  write(folder / kExitFile, "143");
  const KeptRun kept = find_run(runs.path().string(), plan, plan.runs[0]);
  CHECK(kept.outcome == RunOutcome::failed);
  CHECK(kept.reason == "it did not end within 3 s (--timeout)");
}

TEST_CASE("a failure that two variants share is that of both") {
  const test::TemporaryDirectory runs;
  const Plan plan = plan_of(
      "[[variant]]\nname = \"a\"\noptional = true\nlr = 1\n[[variant]]\nname = \"b\"\noptional = true\nlr = 1\n");
  const std::filesystem::path first = runs.path() / plan.runs[0].folder, second = runs.path() / plan.runs[1].folder;
  write(first / "environment.json", "{\"state\": \"failed\"}");
  write(first / kOutputFile, "error: no GPU\n");
  Results results = collect(runs.path().string(), plan);
  CHECK(is_complete(results));
  CHECK(failures_of(results) == std::vector<std::string>{"Cannot run here, no GPU: a (seed 1) and b (seed 1)."});
  // Its own failure is told where there is one.
  write(second / "environment.json", "{\"state\": \"failed\"}");
  write(second / kOutputFile, "error: no data\n");
  CHECK(find_run(runs.path().string(), plan, plan.runs[1]).reason == "no data");
}

TEST_CASE("a benchmark that told no figures, or a file that cannot be read, is one run that failed") {
  const test::TemporaryDirectory runs;
  Plan plan = plan_of("[grid]\nlr = [0.1]\n");
  plan.study.program = "conv_bench";
  const std::filesystem::path folder = runs.path() / plan.runs[0].folder, file = folder / "conv_bench.json";
  const auto found = [&] { return find_run(runs.path().string(), plan, plan.runs[0]); };
  write(folder / kExitFile, "0");
  CHECK(found().reason == "it told no figures");
  write(folder / kOutputFile, "a table\nnote: left out: conv1: cudnn: no plan\n");
  write(file, R"({"complete":true,"skipped":["conv1"],"results":[{"pass":"fwd"}]})");
  CHECK(found().outcome == RunOutcome::failed);
  CHECK(found().reason == "it told no figures, behind 'note: left out: conv1: cudnn: no plan'");
  std::filesystem::remove(file);
  std::filesystem::create_directories(file);
  CHECK(found().outcome == RunOutcome::failed);
  CHECK(found().reason.find("conv_bench.json") != std::string::npos);
}
