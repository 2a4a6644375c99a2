// Metric sums and accuracy counts.
#include "tandem/train/metrics.h"

#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;

TEST_CASE("count_correct takes the largest of each row") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor logits = Tensor::from<float>(std::vector<float>{0, 1, 2,     // 2
                                                               5, 1, 2,     // 0
                                                               1, 1, 0,     // tie: the first
                                                               nan, 0, 1,   // never right
                                                               0, nan, 1},  // never right
                                            {5, 3});
  const auto labels = [](std::vector<std::int64_t> values) { return Tensor::from<std::int64_t>(values, {5}); };
  CHECK(train::count_correct(logits, labels({2, 0, 0, 0, 2})) == 3);
  CHECK(train::count_correct(logits, labels({2, 0, 1, 2, 1})) == 2);
  CHECK(train::count_correct(Tensor::zeros({0, 3}), Tensor::from<std::int64_t>(std::vector<std::int64_t>{}, {0})) == 0);
  CHECK_THROWS_AS(train::count_correct(logits, Tensor::zeros({4}, {.dtype = DType::i64})), Error);
}

TEST_CASE("metrics weigh each image alike, whatever the batches") {
  train::Metrics metrics;
  CHECK(std::isnan(metrics.loss()));
  metrics.add(2.0, 3, 4);
  metrics.add(8.0, 0, 1);
  CHECK(metrics.loss() == 3.2);
  CHECK(metrics.accuracy() == 60.0);
}
