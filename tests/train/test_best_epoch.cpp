// The best epoch, and early stopping.
#include "tandem/train/best_epoch.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

/// After which of these accuracies a run ends; 0: after none.
std::int64_t end_of(const std::vector<double>& figures, BestBy by, const EarlyStopping& stopping) {
  BestEpoch best(by, stopping);
  for (const double figure : figures) {
    EpochRecord record;
    record.epoch = best.epochs() + 1;
    record.test_accuracy = record.test_loss = figure;
    best.add(record);
    if (best.should_stop()) return best.epochs();
  }
  return 0;
}

}  // namespace

TEST_CASE("a run ends after so many epochs that were no better") {
  const std::vector<double> accuracies{50, 60, 60, 59, 61, 60, 61, 60.5};
  CHECK(end_of(accuracies, BestBy::test_accuracy, {}) == 0);
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 1}) == 3);
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 2}) == 4);
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 3}) == 8);
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 4}) == 0);
  // 61 is no better than 60 by more than 1: the last better epoch is the second.
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 3, .min_delta = 1.0}) == 5);
  CHECK(end_of(accuracies, BestBy::test_accuracy, {.patience = 3, .min_delta = 0.9}) == 8);
  // Small steps count once they add up.
  CHECK(end_of({50, 50.6, 51.2, 51.8, 52.4}, BestBy::test_accuracy, {.patience = 2, .min_delta = 1.0}) == 0);
  CHECK(end_of({2.0, 1.0, 1.5, 0.5, 0.75}, BestBy::test_loss, {.patience = 1}) == 3);
  CHECK(end_of({std::nan(""), 1.0, std::nan(""), std::nan("")}, BestBy::test_loss, {.patience = 2}) == 4);
  CHECK(end_of({std::nan(""), std::nan("")}, BestBy::test_loss, {.patience = 2}) == 2);
  CHECK(end_of({-1e300, 1e300}, BestBy::test_accuracy, {.patience = 1, .min_delta = 1e9}) == 0);
}

TEST_CASE("the best epoch is the first with the best figure, whatever early stopping counts") {
  BestEpoch best(BestBy::test_loss, {.patience = 9, .min_delta = 0.5});
  CHECK_FALSE(best.best());
  for (const double loss : {2.0, 1.9, 1.8, 1.8, 1.85}) {
    EpochRecord record;
    record.epoch = best.epochs() + 1;
    record.test_loss = loss;
    best.add(record);
  }
  CHECK(best.best() == BestFigure{"test_loss", 3, 1.8});
}

TEST_CASE("the best epoch goes on from its state") {
  const std::vector<double> accuracies{50, 60, 59, 58, 57, 63, 62};
  const auto add = [](BestEpoch& best, double accuracy) {
    EpochRecord record;
    record.epoch = best.epochs() + 1;
    record.test_accuracy = accuracy;
    best.add(record);
  };
  for (std::size_t left = 0; left <= accuracies.size(); ++left) {
    CAPTURE(left);
    BestEpoch whole(BestBy::test_accuracy, {.patience = 3, .min_delta = 0.5}), first = whole, second = whole;
    for (std::size_t i = 0; i < accuracies.size(); ++i) {
      if (i == left) second.load_state(first.state());
      add(whole, accuracies[i]);
      add(i < left ? first : second, accuracies[i]);
      const BestEpoch& now = i < left ? first : second;
      CHECK(now.should_stop() == whole.should_stop());
      CHECK(now.best() == whole.best());
      CHECK(now.state().to_vector<double>() == whole.state().to_vector<double>());
    }
  }
  BestEpoch best(BestBy::test_accuracy, {});
  const auto refused = [&](const Tensor& state) { return error_of([&] { best.load_state(state); }); };
  CHECK_THAT(refused(Tensor::zeros({5})), ContainsText("must be f64[5], got f32[5]"));
  CHECK_THAT(refused(Tensor()), ContainsText("must be f64[5]"));
  CHECK_THAT(refused(Tensor::from<double>({1, 1, 2, 0, 0}, {5})), ContainsText("makes no sense"));
  CHECK_THAT(refused(Tensor::from<double>({-1, 1, 0, 0, 0}, {5})), ContainsText("makes no sense"));
  CHECK_THAT(refused(Tensor::from<double>({1, 1, 0, std::nan(""), 0}, {5})), ContainsText("makes no sense"));
}

TEST_CASE("early stopping is written as PATIENCE[,MIN_DELTA]") {
  CHECK(parse_early_stopping("5") == EarlyStopping{5, 0.0});
  CHECK(parse_early_stopping("3,0.25") == EarlyStopping{3, 0.25});
  for (const char* text : {"0", "5", "3,0.25", "1,1e-05"}) CHECK(to_string(parse_early_stopping(text)) == text);
  for (const char* text : {"", "x", "-1", "2.5", "3,", "3,-1", "3,nan", "3,inf", "3,1,2", "99999999"}) {
    CAPTURE(text);
    CHECK_THAT(error_of([&] { parse_early_stopping(text); }), ContainsText("is not PATIENCE[,MIN_DELTA]"));
  }
}

TEST_CASE("figures of epochs have names") {
  EpochRecord epoch;
  epoch.train_loss = 1.0;
  epoch.test_loss = 2.0;
  epoch.test_accuracy = 3.0;
  epoch.validation_loss = 4.0;
  epoch.validation_accuracy = 5.0;
  double expected[] = {3.0, 2.0, 1.0, 5.0, 4.0};
  for (std::size_t i = 0; i < best_by_names().size(); ++i) {
    const BestBy by = parse_best_by(best_by_names()[i]);
    CHECK(name_of(by) == best_by_names()[i]);
    CHECK(figure_of(epoch, by) == expected[i]);
    CHECK(merit_of(epoch, by) == (name_of(by).ends_with("loss") ? -expected[i] : expected[i]));
  }
  CHECK_THAT(error_of([] { parse_best_by("loss"); }), ContainsText("'loss' is none of test_accuracy, test_loss"));
}
