// The rules of the verdict, each by a run that is just inside and one that is just outside.
#include "tandem/train/report/verdict.h"

#include "tests/support/catch.h"

#include <cmath>

using namespace tandem::train::report;
using tandem::test::ContainsText;

namespace {

struct Row {
  double train_loss, train_accuracy, test_loss, test_accuracy;
};

RunData run_of(const std::vector<Row>& rows, std::size_t classes = 10) {
  RunData run;
  run.state = RunState::finished;
  for (const Row& row : rows) {
    Epoch epoch;
    epoch.epoch = static_cast<std::int64_t>(run.epochs.size()) + 1;
    epoch.train_loss = row.train_loss;
    epoch.train_accuracy = row.train_accuracy;
    epoch.test_loss = row.test_loss;
    epoch.test_accuracy = row.test_accuracy;
    run.epochs.push_back(epoch);
  }
  run.evaluation.emplace().classes.resize(classes);
  return run;
}

}  // namespace

TEST_CASE("verdict: good, and the numbers are named") {
  const Verdict verdict = judge(run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.34, 89}, {0.296, 91, 0.33, 90}}));
  CHECK(verdict.fit == Fit::good);
  REQUIRE(verdict.reasons.size() == 3);
  CHECK(verdict.reasons[0] == "Training accuracy is 91.00 %, test accuracy 90.00 %: 1.00 points less.");
}

TEST_CASE("verdict: overfitting by a test loss that rises while the training loss falls") {
  const Verdict rises = judge(run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.40, 88}, {0.2, 93, 0.421, 88}}));
  CHECK(rises.fit == Fit::overfitting);
  CHECK(rises.headline == "Overfitting since epoch 2");
  CHECK_THAT(rises.reasons[0], ContainsText("lowest in epoch 2, at 0.4, and is 0.421 now, 5 % above"));
  CHECK(rises.advice.back() ==
        "The weights of epoch 2 have the lowest test loss: a run with --best-by test_loss keeps them.");
  CHECK(judge(run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.40, 88}, {0.2, 93, 0.419, 88}})).fit == Fit::good);
  // Both losses rise: that is not learning the training images too well.
  CHECK(judge(run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.40, 88}, {0.31, 90, 0.43, 88}})).fit == Fit::good);
}

TEST_CASE("verdict: overfitting by a gap of accuracies") {
  CHECK(judge(run_of({{0.5, 82, 0.5, 81}, {0.1, 96, 0.48, 85}, {0.09, 98, 0.48, 89.9}})).fit == Fit::overfitting);
  CHECK(judge(run_of({{0.5, 82, 0.5, 81}, {0.1, 96, 0.48, 85}, {0.09, 98, 0.48, 90.1}})).fit == Fit::good);
}

TEST_CASE("verdict: underfitting, still learning, and not learning") {
  CHECK(judge(run_of({{1.5, 40, 1.5, 40}, {1.0, 60, 1.0, 60}, {0.99, 79.9, 0.99, 79}})).fit == Fit::underfitting);
  CHECK(judge(run_of({{1.5, 40, 1.5, 40}, {1.0, 60, 1.0, 60}, {0.99, 80.1, 0.99, 79}})).fit == Fit::good);
  CHECK(judge(run_of({{1.5, 40, 1.5, 40}, {1.0, 60, 1.0, 60}, {0.94, 70, 0.94, 69}})).fit == Fit::still_learning);
  CHECK(judge(run_of({{1.5, 40, 1.5, 40}, {1.0, 60, 1.0, 60}, {0.94, 70, 0.96, 69}})).fit == Fit::underfitting);
  const std::vector<Row> chance{{2.3, 10, 2.3, 10}, {2.3, 10, 2.3, 10}, {2.3, 14.9, 2.3, 10}};
  CHECK(judge(run_of(chance)).fit == Fit::not_learning);
  CHECK(judge(run_of(chance, 100)).fit == Fit::underfitting);
}

TEST_CASE("verdict: what moves does not stand still, and the end of a schedule is told") {
  // A run on 2000 images of CIFAR-10 over 5 epochs of one-cycle.
  RunData run = run_of({{2.2082, 17.8, 2.2066, 18.5},
                        {1.8753, 30.5, 2.0731, 26.8},
                        {1.7334, 34.9, 1.8228, 30.5},
                        {1.5789, 40.4, 1.6156, 42.3},
                        {1.5073, 43.4, 1.6277, 40.3}});
  const double rates[] = {0.0736, 0.0950, 0.0611, 0.0188, 4e-7};
  for (std::size_t i = 0; i < 5; ++i) run.epochs[i].lr = rates[i];
  Verdict verdict = judge(run);
  CHECK(verdict.fit == Fit::underfitting);
  CHECK(verdict.reasons[0] == "Training accuracy is only 43.4 %, below 80 %; in epoch 4 it was 40.4 %.");
  CHECK_THAT(verdict.reasons.back(), ContainsText("The learning rate ended at 4e-07"));
  CHECK_THAT(verdict.advice[0], ContainsText("Train longer first (--epochs)"));
  run.epochs.back().lr = 0.05;
  CHECK_THAT(judge(run).reasons.back(), !ContainsText("learning rate"));
  run.epochs[3].train_accuracy = 42.5;
  CHECK_THAT(judge(run).reasons[0], ContainsText("and stands still"));
  CHECK_THAT(judge(run).advice[0], ContainsText("Try a larger network"));

  RunData falls = run_of({{1.5, 40, 1.5, 40}, {1.0, 60, 1.0, 60}, {0.94, 70, 0.94, 69}});
  CHECK_THAT(judge(falls).advice[0], ContainsText("is likely to gain"));
  for (std::size_t i = 0; i < 3; ++i) falls.epochs[i].lr = i == 2 ? 4e-7 : 0.1;
  CHECK(judge(falls).fit == Fit::still_learning);
  CHECK_THAT(judge(falls).reasons.back(), ContainsText("The learning rate ended at 4e-07"));
  CHECK_THAT(judge(falls).advice[0], ContainsText("going on with this one hardly does"));
}

TEST_CASE("verdict: a run that was stopped early is not told to be longer") {
  // The end of a run on synthetic images.
  RunData run = run_of({{0.0160, 100, 0.1961, 95.1},
                        {0.0076, 100, 0.1483, 97.1},
                        {0.0051, 100, 0.1224, 98.0},
                        {0.0037, 100, 0.1146, 97.1}});
  CHECK(judge(run).fit == Fit::still_learning);
  run.stopped_early = true;
  CHECK_THAT(judge(run).reasons.back(), ContainsText("It was stopped early"));
  run.best_by = "validation_accuracy";
  run.best_epoch = 3;
  const Verdict verdict = judge(run);
  CHECK(verdict.fit == Fit::good);
  CHECK_THAT(verdict.reasons.back(), ContainsText("by validation_accuracy, no epoch was better than epoch 3"));
  for (const std::string& advice : verdict.advice) CHECK_THAT(advice, !ContainsText("--epochs"));
  run.epochs.resize(2);
  CHECK_THAT(judge(run).advice[0], ContainsText("patience"));
}

TEST_CASE("verdict: diverged, too short, and nothing to go by") {
  RunData run = run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.34, 89}});
  CHECK(judge(run).fit == Fit::unknown);
  CHECK_THAT(judge(run).reasons[0], ContainsText("2 epochs"));
  CHECK_THAT(judge(run).advice[0], ContainsText("Train longer"));
  // Three epochs, of which one was evaluated.
  RunData seldom = run_of({{0.9, 70, NAN, NAN}, {0.5, 82, NAN, NAN}, {0.3, 90, 0.34, 89}});
  CHECK(judge(seldom).fit == Fit::unknown);
  CHECK(judge(seldom).advice == std::vector<std::string>{"Evaluate more of the epochs: --evaluate-every 1."});
  run.state = RunState::diverged;
  CHECK(judge(run).headline == "Diverged in epoch 2");
  CHECK_THAT(judge(run).advice[0], ContainsText("--find-nan"));
  CHECK(judge(RunData{}).fit == Fit::unknown);
}

TEST_CASE("verdict: validation figures go before those of the test") {
  RunData run = run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.40, 88}, {0.2, 93, 0.2, 93}});
  const double losses[] = {0.5, 0.3, 0.4};
  for (std::size_t i = 0; i < 3; ++i) {
    run.epochs[i].validation_loss = losses[i];
    run.epochs[i].validation_accuracy = 90;
  }
  const Verdict verdict = judge(run);
  CHECK(verdict.fit == Fit::overfitting);
  CHECK_THAT(verdict.reasons[0], ContainsText("The validation loss"));
}
