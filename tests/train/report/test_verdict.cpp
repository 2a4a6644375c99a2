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

TEST_CASE("verdict: diverged, too short, and nothing to go by") {
  RunData run = run_of({{0.5, 82, 0.5, 81}, {0.3, 90, 0.34, 89}});
  CHECK(judge(run).fit == Fit::unknown);
  CHECK_THAT(judge(run).reasons[0], ContainsText("2 epochs"));
  run.state = RunState::diverged;
  CHECK(judge(run).headline == "Diverged in epoch 2");
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
