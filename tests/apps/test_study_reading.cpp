// Sentences over results that no program has made: ties, noise, failures, one seed, NaN.
#include "apps/study/reading.h"
#include "apps/study/tables.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"

#include <limits>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::study;
using test::diverged_run;
using test::failed_run;
using test::finished_run;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Sentences = std::vector<std::string>;

Study optimizers(const std::string& measure = "test_accuracy") {
  return test::study_of("title = \"Optimizers\"\nmeasure = \"" + measure +
                        "\"\n[grid]\noptimizer = [\"sgd\", \"adam\", \"rmsprop\"]\n");
}

/// Of accuracies, one list for each optimizer.
Results accuracies(const std::vector<std::vector<double>>& values) {
  std::vector<std::vector<KeptRun>> runs;
  for (const auto& of_point : values) {
    runs.emplace_back();
    for (const double value : of_point) runs.back().push_back(finished_run(value, 1.0));
  }
  return test::results_of(optimizers(), runs);
}

}  // namespace

TEST_CASE("clear differences and such within the noise are told apart") {
  const Results results = accuracies({{70.0, 70.2, 69.8}, {75.0, 75.2, 74.8}, {70.5, 69.0, 71.0}});
  CHECK(
      reading_of(results) ==
      Sentences{"Test accuracy, against optimizer sgd (70.00 % \xC2\xB1 0.20): clearly higher with optimizer adam "
                "(+5.00 points); within the noise of 3 seeds with optimizer rmsprop (+0.17 points).",
                "The highest test accuracy has optimizer adam (75.00 % \xC2\xB1 0.20), clearly ahead of all others."});
  CHECK(failures_of(results).empty());
}

TEST_CASE("less is better where a measure says so") {
  std::vector<std::vector<KeptRun>> runs;
  for (const double seconds : {10.0, 5.0, 20.0})
    runs.push_back({finished_run(50.0, seconds), finished_run(50.0, seconds * 1.01)});
  const Sentences reading = reading_of(test::results_of(optimizers("seconds"), runs));
  REQUIRE(reading.size() == 2);
  CHECK_THAT(reading[0], test::ContainsText("clearly higher with optimizer rmsprop (2.00 x)") &&
                             test::ContainsText("clearly lower with optimizer adam (0.50 x)"));
  CHECK_THAT(reading[1], test::ContainsText("The lowest time has optimizer adam"));
}

TEST_CASE("a clear difference is never called 1.00 x") {
  std::vector<std::vector<KeptRun>> runs;
  for (const double seconds : {10.0, 9.99, 10.0})
    runs.push_back({finished_run(50.0, seconds), finished_run(50.0, seconds + 1e-6)});
  const Sentences reading = reading_of(test::results_of(optimizers("seconds"), runs));
  CHECK_THAT(reading[0], test::ContainsText("clearly lower with optimizer adam (0.999 x)"));
}

TEST_CASE("a clear difference is told where no ratio shows it, and in points of few images") {
  const auto first = [](const std::string& measure, const std::vector<KeptRun>& all) {
    std::vector<std::vector<KeptRun>> runs;
    for (const KeptRun& run : all) runs.push_back({run, run});
    return reading_of(test::results_of(optimizers(measure), runs)).at(0);
  };
  const auto with_activations = [](double bytes) {
    KeptRun run = finished_run(50.0, 1.0);
    run.data->peak_tensor_bytes = {{"activations", bytes}};
    return run;
  };
  CHECK_THAT(
      first("activation_memory", {with_activations(0x1p28), with_activations(0x1p28 + 64.0), with_activations(0x1p28)}),
      test::ContainsText("clearly higher with optimizer adam (+64 B)"));
  const KeptRun all_right = finished_run(90.0, 1.0), one_wrong = finished_run(89.998, 1.0);  // 10 more in training
  CHECK_THAT(first("train_accuracy", {all_right, one_wrong, all_right}),
             test::ContainsText("clearly lower with optimizer adam (-0.002 points)"));
  CHECK_THAT(first("seconds", {finished_run(50.0, 1e-3), finished_run(50.0, 4809.5), finished_run(50.0, 1.0)}),
             test::ContainsText("optimizer adam (4,809,500 x) and optimizer rmsprop (1,000 x)"));
}

TEST_CASE("figures that are the same are so whatever their sum is rounded by") {
  REQUIRE((0.055 + 0.055 + 0.055 + 0.055 + 0.055) / 5.0 != 0.055);
  std::vector<std::vector<KeptRun>> runs(3, std::vector<KeptRun>(5, finished_run(50.0, 0.055)));
  for (const std::size_t missing : {2U, 3U, 4U}) runs[1][missing] = KeptRun();
  runs[2][4] = KeptRun();
  const Sentences reading = reading_of(test::results_of(optimizers("seconds"), runs));
  CHECK_THAT(reading.at(0), test::ContainsText("the very same with optimizer adam and optimizer rmsprop."));
  CHECK_THAT(reading.at(1), test::ContainsText("have the same time"));
}

TEST_CASE("small ratios keep their digits") {
  std::vector<std::vector<KeptRun>> runs;
  for (const double seconds : {100.0, 0.123, 100.0}) runs.push_back({finished_run(50.0, seconds)});
  CHECK_THAT(reading_of(test::results_of(optimizers("seconds"), runs)).at(0), test::ContainsText("adam (0.0012 x)"));
}

TEST_CASE("one seed tells no difference for sure") {
  CHECK(reading_of(accuracies({{70.0}, {75.0}, {60.0}})) ==
        Sentences{"Test accuracy, against optimizer sgd (70.00 %): not to be told from one seed with optimizer adam "
                  "(+5.00 points) and optimizer rmsprop (-10.00 points).",
                  "The highest test accuracy has optimizer adam (75.00 %); one seed does not tell whether it is better "
                  "than the others."});
}

TEST_CASE("ties are called the same, and the best one is not ahead of them") {
  CHECK(
      reading_of(accuracies({{70.0, 70.0}, {70.0, 70.0}, {60.0, 60.0}})) ==
      Sentences{"Test accuracy, against optimizer sgd (70.00 % \xC2\xB1 0.00): clearly lower with optimizer rmsprop "
                "(-10.00 points); the very same with optimizer adam.",
                "The highest test accuracy has optimizer sgd (70.00 % \xC2\xB1 0.00); the very same: optimizer adam."});
}

TEST_CASE("noise as large as the differences makes no winner") {
  const Sentences reading = reading_of(accuracies({{60.0, 80.0}, {62.0, 79.0}, {59.0, 82.0}}));
  REQUIRE(reading.size() == 2);
  CHECK_THAT(reading[0],
             test::ContainsText("within the noise of 2 seeds with optimizer adam") && !test::ContainsText("clearly"));
  CHECK_THAT(reading[1], test::ContainsText("all others are within the noise of it"));
}

TEST_CASE("what failed has no figure, and says why") {
  const Results results = test::results_of(optimizers(), {{finished_run(70.0, 1.0), finished_run(70.4, 1.0)},
                                                          {failed_run("out of memory"), failed_run("out of memory")},
                                                          {finished_run(72.0, 1.0), diverged_run(50.0)}});
  CHECK(reading_of(results) ==
        Sentences{"Test accuracy, against optimizer sgd (70.20 % \xC2\xB1 0.28): not to be told from one seed with "
                  "optimizer rmsprop (+1.80 points); no figure of optimizer adam."});
  CHECK(failures_of(results) ==
        Sentences{"Failed, out of memory: optimizer adam (seeds 1 and 2).",
                  "Diverged, the loss of step 7 is not a finite number: optimizer rmsprop (seed 2)."});
}

TEST_CASE("a run that diverged early is not the fastest, and counts as no seed") {
  const Study study = test::study_of(
      "title = \"T\"\nmeasure = [\"seconds\", \"epoch_seconds\", \"images_per_second\", \"epochs\", "
      "\"skipped_steps\", \"speed_up\"]\n[grid]\nlr = [0.1, 10]\n");
  KeptRun whole = finished_run(70.0, 10.0), diverged = diverged_run(10.0);
  for (KeptRun* const run : {&whole, &diverged})
    for (auto& epoch : run->data->epochs) epoch.skipped_steps = 1.0;
  const Results results = test::results_of(study, {{whole, whole}, {whole, diverged}});
  for (const Sample& sample : results.points[0].samples) CHECK(sample.count == 2);
  for (const Sample& sample : results.points[1].samples) CHECK(sample.count == 1);
  CHECK(results.points[1].samples[0].mean == 10.0);
  const Table table = table_of(results);
  CHECK(table.rows[0][1] == "2");
  CHECK(table.rows[1][1] == "1");
}

TEST_CASE("a baseline without a figure, and figures that are no numbers, are told") {
  const Results failed =
      test::results_of(optimizers(), {{failed_run("x")}, {finished_run(70.0, 1.0)}, {finished_run(71.0, 1.0)}});
  CHECK(reading_of(failed) ==
        Sentences{"Test accuracy: optimizer sgd has no figure, so that nothing can be held against it.",
                  "The highest test accuracy has optimizer rmsprop (71.00 %); one seed does not tell whether it is "
                  "better than optimizer adam."});
  // Two that are not held against each other.
  const auto best = [](double adam, double rmsprop) {
    return reading_of(accuracies({{kNaN, kNaN}, {adam, adam + 1.0}, {rmsprop, rmsprop + 1.0}})).at(1);
  };
  CHECK(best(50.0, 70.0) ==
        "The highest test accuracy has optimizer rmsprop (70.50 % \xC2\xB1 0.71), clearly ahead of optimizer adam.");
  CHECK(
      best(50.0, 50.1) ==
      "The highest test accuracy has optimizer rmsprop (50.60 % \xC2\xB1 0.71); optimizer adam is within the noise of "
      "it.");
  CHECK(reading_of(accuracies({{kNaN, kNaN}, {kNaN, kNaN}, {kNaN, kNaN}})) ==
        Sentences{"Test accuracy: no run has a figure of it."});
}

TEST_CASE("what is varied beside the baseline is compared at equal values") {
  const Study study = test::study_of(
      "title = \"Two\"\nmeasure = \"seconds\"\n[grid]\noptimizer = [\"sgd\", \"adam\"]\nbatch-size = [16, 32]\n");
  const auto run = [](double seconds) {
    return std::vector<KeptRun>{finished_run(1.0, seconds), finished_run(1.0, seconds * 1.001)};
  };
  const Sentences reading = reading_of(test::results_of(study, {run(10.0), run(20.0), run(15.0), run(40.0)}));
  REQUIRE(reading.size() == 3);
  CHECK_THAT(reading[0], test::ContainsText("against optimizer sgd \xC2\xB7 batch-size 16") &&
                             test::ContainsText("clearly higher with optimizer adam (1.50 x)."));
  CHECK_THAT(reading[1], test::ContainsText("against optimizer sgd \xC2\xB7 batch-size 32") &&
                             test::ContainsText("clearly higher with optimizer adam (2.00 x)."));
}

TEST_CASE("baselines from which nothing differs clearly are told together") {
  const Study study = test::study_of(
      "title = \"Two\"\nmeasure = \"test_accuracy\"\n[grid]\noptimizer = [\"sgd\", \"adam\"]\nbatch-size = [16, 32, "
      "64]\n");
  const auto run = [](double accuracy) {
    return std::vector<KeptRun>{finished_run(accuracy, 1.0), finished_run(accuracy + 2.0, 1.0)};
  };
  const Sentences none =
      reading_of(test::results_of(study, {run(50.0), run(50.0), run(50.0), run(51.0), run(49.0), run(50.5)}));
  CHECK(none.at(0) == "Test accuracy: none of the 3 differences from 3 baselines is clear.");
  const Sentences one =
      reading_of(test::results_of(study, {run(50.0), run(50.0), run(50.0), run(90.0), run(49.0), run(50.5)}));
  CHECK_THAT(one.at(0), test::ContainsText("clearly higher with optimizer adam (+40.00 points)."));
  CHECK(one.at(1) == "Test accuracy: none of the 2 differences from the other 2 baselines is clear.");
}

TEST_CASE("of what is tried for the best, the best alone is shown") {
  const Study study = test::study_of(
      "title = \"Tuned\"\nmeasure = \"test_accuracy\"\nbest-of = \"lr\"\n[grid]\noptimizer = [\"sgd\", \"adam\"]\nlr = "
      "[0.1, 0.01]\n");
  const auto run = [](double accuracy) {
    return std::vector<KeptRun>{finished_run(accuracy, 1.0), finished_run(accuracy + 0.1, 1.0)};
  };
  const Results results = test::results_of(study, {run(50.0), run(60.0), run(70.0), run(20.0)});
  REQUIRE(results.shown == std::vector<std::size_t>{1, 2});
  CHECK(results.points[2].baseline == 1);
  const Sentences reading = reading_of(results);
  CHECK_THAT(reading.at(0), test::ContainsText("clearly higher with optimizer adam (+10.00 points)."));
  CHECK(reading.at(1) ==
        "optimizer sgd \xC2\xB7 lr 0.01 has its best lr at the smallest value that was tried: a smaller one may be "
        "better.");
  CHECK_THAT(reading.at(2), test::ContainsText("lr 0.1 has its best lr at the largest value that was tried"));
}

TEST_CASE("a value of which a seed diverged or failed is not the best") {
  const Study study =
      test::study_of("title = \"T\"\nmeasure = \"test_accuracy\"\nbest-of = \"lr\"\n[grid]\nlr = [0.1, 1, 10]\n");
  const Results results = test::results_of(study, {{finished_run(50.0, 1.0), finished_run(51.0, 1.0)},
                                                   {finished_run(90.0, 1.0), diverged_run(80.0)},
                                                   {failed_run("x"), finished_run(95.0, 1.0)}});
  CHECK(results.shown == std::vector<std::size_t>{0});
}

TEST_CASE("the best by a figure against the baseline is that with the best such figure") {
  const Study study = test::study_of(
      "title = \"T\"\nmeasure = \"speed_up\"\nbest-of = \"lr\"\nbest-by = \"speed_up\"\n[grid]\noptimizer = [\"sgd\", "
      "\"adam\"]\nlr = [0.1, 1]\n");
  const auto run = [](double seconds) { return std::vector<KeptRun>{finished_run(50.0, seconds)}; };
  const Results results = test::results_of(study, {run(4.0), run(4.0), run(4.0), run(2.0)});
  CHECK(results.shown == std::vector<std::size_t>{0, 3});
}

TEST_CASE("the edge of what was tried is told of whole runs alone") {
  const Study study =
      test::study_of("title = \"T\"\nmeasure = \"test_accuracy\"\nbest-of = \"lr\"\n[grid]\nlr = [0.1, 1, 10]\n");
  const auto edges = [&](const std::vector<std::vector<KeptRun>>& runs) {
    std::string text;
    for (const std::string& sentence : reading_of(test::results_of(study, runs)))
      if (sentence.find("that was tried") != sentence.npos) text += sentence;
    return text;
  };
  const auto run = [](double accuracy) { return std::vector<KeptRun>{finished_run(accuracy, 1.0)}; };
  const std::vector<KeptRun> none(1), diverged{diverged_run(1.0)};
  CHECK_THAT(edges({run(50.0), run(40.0), diverged}), test::ContainsText("lr 0.1 has its best lr at the smallest"));
  CHECK(edges({none, none, none}).empty());
  CHECK(edges({run(kNaN), run(kNaN), run(kNaN)}).empty());
  CHECK(edges({run(50.0), none, none}).empty());
  CHECK(edges({run(50.0), diverged, run(40.0)}).empty());
  CHECK(edges({run(50.0), run(60.0), diverged}).empty());
  CHECK(edges({run(50.0), run(50.0), run(40.0)}).empty());  // the next one is as good
}

TEST_CASE("where all are the very same, none is called the best") {
  CHECK(reading_of(accuracies({{70.0, 70.0}, {70.0, 70.0}, {70.0, 70.0}})).at(1) ==
        "All that have a figure of it have the same test accuracy (70.00 % \xC2\xB1 0.00).");
  CHECK(reading_of(accuracies({{70.0}, {70.0}, {70.0}})).at(1) ==
        "All that have a figure of it have the same test accuracy (70.00 %).");
}

TEST_CASE("tables say that a best by the test images flatters") {
  const auto note = [](const std::string& by) {
    return note_of_best(test::study_of("title = \"T\"\nbest-of = \"lr\"\n" + by + "[grid]\nlr = [0.1, 1]\n"));
  };
  CHECK(note("") ==
        "Of each, the lr with the best test accuracy of all its seeds is shown: chosen by the test images, so that its "
        "figures on them flatter.");
  CHECK(note("best-by = \"validation_accuracy\"\n") ==
        "Of each, the lr with the best validation accuracy of all its seeds is shown.");
  CHECK(note_of_best(optimizers()).empty());
}

TEST_CASE("what may be impossible on a machine is no failure") {
  const Study study =
      test::study_of("title = \"T\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\noptional = true\nlr = 1\n");
  const Results results = test::results_of(study, {{finished_run(1.0, 1.0)}, {failed_run("no GPU")}});
  CHECK(is_complete(results));
  CHECK(failures_of(results) == Sentences{"Cannot run here, no GPU: b (seed 1)."});
  CHECK_FALSE(is_complete(test::results_of(study, {{failed_run("x")}, {finished_run(1.0, 1.0)}})));
  CHECK_FALSE(is_complete(test::results_of(study, {{finished_run(1.0, 1.0)}, {KeptRun{}}})));
}

TEST_CASE("a mean and its deviation are in one unit, in digits that mean something") {
  using train::plot::Unit;
  CHECK(sample_text(sample_of({4.4, 5.36}), Unit::seconds) == "4.88 \xC2\xB1 0.68 s");
  CHECK(sample_text(sample_of({0.0120, 0.0124}), Unit::seconds) == "12.20 \xC2\xB1 0.28 ms");
  CHECK(sample_text(sample_of({143.0 * 0x1p20, 144.0 * 0x1p20}), Unit::bytes) == "143.5 \xC2\xB1 0.7 MiB");
  CHECK(sample_text(sample_of({3800.0, 3850.0}), Unit::none) == "3,825 \xC2\xB1 35");
  CHECK(sample_text(sample_of({38000.0, 42000.0}), Unit::none) == "40,000 \xC2\xB1 2,828");
  CHECK(sample_text(sample_of({1.0, 1.0}), Unit::none) == "1 \xC2\xB1 0");
  CHECK(sample_text(sample_of({1.1, 1.6}), Unit::none) == "1.35 \xC2\xB1 0.35");
  CHECK(sample_text(sample_of({0.0, 0.0}), Unit::none) == "0 \xC2\xB1 0");
  CHECK(sample_text(sample_of({1200.0, 1260.0}), Unit::seconds) == "20.50 \xC2\xB1 0.71 min");
  CHECK(sample_text(sample_of({12.5}), Unit::percent) == "12.50 %");
  CHECK(sample_text(sample_of({}), Unit::bytes) == "\xE2\x80\x93");
}
