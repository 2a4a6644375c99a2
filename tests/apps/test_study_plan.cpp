// Combinations, names of folders, baselines, estimates, and what stands in tables.
#include "apps/study/bench_run.h"
#include "apps/study/estimate.h"
#include "apps/study/plan.h"
#include "apps/study/tables.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::study;
using tandem::test::study_of;

namespace {

Study two_by_two() {
  return study_of(
      "title = \"T\"\n[run]\nepochs = 9\nlr = 1\n[quick]\nepochs = 2\n[full]\nepochs = 20\n[grid]\n"
      "optimizer = [\"sgd\", \"adam\"]\nbatch-size = [16, 32]\n");
}

}  // namespace

TEST_CASE("a plan is the product of what is varied, seed by seed") {
  PlanOptions options;
  options.seeds = 2;
  options.settings = {{"dataset", "mnist"}, {"optimizer", "rmsprop"}};
  const Plan plan = make_plan(two_by_two(), options);
  REQUIRE(plan.points.size() == 4);
  CHECK(plan.points[1].label == "optimizer sgd \xC2\xB7 batch-size 32");
  // The command line wins over the file, but not over what is varied.
  CHECK(plan.points[1].settings ==
        Settings{{"batch-size", "32"}, {"dataset", "mnist"}, {"epochs", "2"}, {"lr", "1"}, {"optimizer", "sgd"}});
  REQUIRE(plan.runs.size() == 8);
  CHECK(plan.runs[3].seed == 1);
  CHECK(plan.runs[4].seed == 2);
  CHECK_THAT(plan.runs[4].folder, test::ContainsText("some-optimizer-sgd-batch-size-16-") &&
                                      Catch::Matchers::EndsWith(plan.points[0].key + "-seed-2"));
}

TEST_CASE("settings that change make other folders, and nothing else does") {
  const Plan quick = make_plan(two_by_two(), {}), again = make_plan(two_by_two(), {});
  PlanOptions full;
  full.extent = Extent::full;
  const Plan other = make_plan(two_by_two(), full);
  std::set<std::string> keys;
  for (std::size_t i = 0; i < quick.points.size(); ++i) {
    CHECK(quick.points[i].key == again.points[i].key);
    keys.insert({quick.points[i].key, other.points[i].key});
  }
  CHECK(keys.size() == 8);
}

TEST_CASE("lists of a variant are gone through together") {
  const Plan plan = make_plan(study_of("title = \"T\"\n[[variant]]\nname = \"a\"\nbatch-size = [16, 32]\nlr = [1, 2]\n"
                                       "[[variant]]\nname = \"b\"\nlr = 1\nbatch-size = [16, 32]\n[baseline]\n"
                                       "batch-size = 32\n"),
                              {});
  REQUIRE(plan.points.size() == 4);
  CHECK(plan.points[1].label == "a \xC2\xB7 batch-size 32");
  CHECK(value_of(plan.points[1].settings, "lr") == "2");
  CHECK(value_of(plan.points[3].settings, "lr") == "1");
  CHECK(baseline_of(plan, 2) == 3);  // of its own variant
  CHECK(baseline_of(plan, 3) == 3);
}

TEST_CASE("the baseline is the first value of what is varied first, at equal others") {
  const Plan plan = make_plan(two_by_two(), {});
  CHECK(baseline_of(plan, 0) == 0);
  CHECK(baseline_of(plan, 2) == 0);
  CHECK(baseline_of(plan, 3) == 1);
}

TEST_CASE("a run of several ranks is started by mpirun") {
  const Study study = study_of("title = \"T\"\n[grid]\nranks = [1, 2]\n");
  const Plan plan = make_plan(study, {});
  CHECK(command_of("bin/cifar_train", study, plan.points[0], 3) ==
        std::vector<std::string>{"bin/cifar_train", "--seed=3"});
  CHECK(command_of("bin/cifar_train", study, plan.points[1], 3) ==
        std::vector<std::string>{"mpirun", "-np", "2", "bin/cifar_train", "--seed=3"});
  const Study far = study_of("title = \"T\"\n[run]\nhosts = \"a,b\"\n[grid]\nranks = [2]\n");
  CHECK(command_of("bin/cifar_train", far, make_plan(far, {}).points[0], 1) ==
        std::vector<std::string>{"mpirun", "-np", "2", "--host", "a,b", "bin/cifar_train", "--seed=1"});
}

TEST_CASE("sizes follow from settings, and time from sizes and a speed") {
  const RunSize cifar = size_of({{"epochs", "3"}});
  CHECK(cifar.train_images == 50000.0);
  CHECK(cifar.test_images == 10000.0);
  const RunSize small =
      size_of({{"dataset", "synthetic"}, {"epochs", "2"}, {"limit-train", "600"}, {"limit-test", "300"}});
  CHECK(seconds_by(small, {100.0, 1.0}) == Approx(1.0 + 2.0 * (600.0 + 100.0) / 100.0));
  CHECK(std::isnan(seconds_by(small, {})));
}

TEST_CASE("what remains is corrected by what has been taken") {
  Remaining remaining;
  for (const double estimate : {10.0, 10.0, 20.0}) remaining.add(estimate);
  CHECK(remaining.seconds() == Approx(40.0));
  remaining.finish(10.0, 20.0);  // twice as long as thought
  CHECK(remaining.seconds() == Approx(60.0));
  remaining.add(std::numeric_limits<double>::quiet_NaN());  // counts as the mean of the others
  CHECK(remaining.seconds() == Approx(90.0));
  remaining.leave(20.0);
  remaining.leave(std::numeric_limits<double>::quiet_NaN());
  CHECK(remaining.seconds() == Approx(20.0));
}

TEST_CASE("tables are written for papers, pages and programs") {
  const Table table{{"a_b", "n"}, {false, true}, {{"x|y, \"z\"", "50 % \xC2\xB1 1"}}};
  CHECK(markdown(table) == "| a_b | n |\n|---|---:|\n| x\\|y, \"z\" | 50 % \xC2\xB1 1 |\n");
  CHECK(csv(table) == "a_b,n\n\"x|y, \"\"z\"\"\",50 % \xC2\xB1 1\n");
  CHECK(latex(table) ==
        "\\begin{tabular}{lr}\n  \\toprule\n  a\\_b & n \\\\\n  \\midrule\n  x|y, \"z\" & 50 \\% $\\pm$ 1 \\\\\n"
        "  \\bottomrule\n\\end{tabular}\n");
}

TEST_CASE("figures in files for programs are whole, and what is missing is empty") {
  const Results results = test::results_of(study_of("title = \"T\"\nmeasure = [\"seconds\", \"test_accuracy\"]\n"
                                                    "[grid]\noptimizer = [\"sgd\", \"adam\"]\n"),
                                           {{test::finished_run(100.0 / 3.0, 1.5)}, {test::failed_run("no, \"x\"")}});
  CHECK(csv(runs_table(results)) ==
        "study,optimizer,seed,outcome,folder,reason,seconds,test_accuracy\n"
        "some,sgd,1,finished,runs/x,,1.5,33.333333333333336\n"
        "some,adam,1,failed,runs/x,\"no, \"\"x\"\"\",,\n");
  CHECK_THAT(csv(epochs_table(results)), test::ContainsText("sgd,1,2,,1,"));
  CHECK_THAT(json_text(results), test::ContainsText("\"mean\": null") && test::ContainsText("33.333333333333336"));
}

TEST_CASE("times of convolutions are sums over layers, each as often as it is there, of a file that is whole") {
  const auto result = [](const char* pass, int count, double hot, const char* more) {
    return fmt::format(R"({{"pass":"{}","layer":{{"count":{}}},"hot_seconds":{},{}}})", pass, count,
                       hot > 0.0 ? fmt::format("{{\"median\":{}}}", hot) : "null", more);
  };
  const std::string results = result("fwd", 1, 2.0, "\"x\":1") + "," + result("fwd", 9, 0.5, "\"x\":1") + "," +
                              result("bwd", 9, 0.0, R"("cold_seconds":{"median":3})");
  CHECK(convolution_figures(R"({"complete":true,"results":[)" + results + "]}") ==
        train::report::NumberTable{{"conv_forward_seconds", 6.5}, {"conv_backward_seconds", 27.0}});
  CHECK(convolution_figures(R"({"complete":false,"results":[)" + results + "]}").empty());
  CHECK(convolution_figures(R"({"complete":true,"results":[]})").empty());
  CHECK(convolution_figures("{").empty());
  CHECK(convolution_figures(R"({"complete":true,"skipped":["conv1: cudnn: no plan"],"results":[)" + results + "]}")
            .empty());
  CHECK(convolution_figures(R"({"complete":true,"wrong":["conv1: cudnn: 2 is not 1"],"results":[)" + results + "]}")
            .empty());
  CHECK(convolution_figures(R"({"complete":true,"skipped":[],"wrong":[],"results":[)" + results + "]}").size() == 2);
  CHECK(convolution_figures(R"({"complete":true,"results":[)" + results + "," +
                            result("fwd", 1, 1.0, R"("impl":"ours")") + "]}")
            .empty());
  const train::report::NumberTable damaged = convolution_figures(
      R"({"complete":true,"results":[)" + result("fwd", 1, 2.0, "\"x\":1") + "," +
      result("fwd", 1, 0.0, R"("cold_seconds":{})") + "," + result("fwd", 1, 2.0, "\"x\":1") + "]}");
  CHECK(std::isnan(train::report::figure_in(damaged, "conv_forward_seconds")));
  CHECK(find_bench("conv_bench")->options("a/b") == std::vector<std::string>{"--json=a/b/conv_bench.json"});
  CHECK(find_bench("cifar_train") == nullptr);
}

TEST_CASE("figures of a bench are read from what it prints, and of others there are none") {
  CHECK(all_reduce_figures(
            "noise\n{\"bytes\":8}\n{\"bytes\":8,\"in_place\":{\"seconds\":2e-6,\"busbw\":4e6}}\n{\"in_place\":{"
            "\"seconds\":1}}\n") == train::report::NumberTable{{"all_reduce_seconds", 2e-6}, {"bus_bandwidth", 4e6}});
  CHECK(all_reduce_figures("error: no\n{\"in_place\":{\"seconds\":null}}\n{").empty());
}
