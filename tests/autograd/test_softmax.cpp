// Softmax beyond the op table: infinities and NaN, layouts, threads, and the cross-entropy that it adds up to.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A row of `columns` elements that begins with these, and goes on with minus infinity.
Tensor row_of(const std::vector<double>& first, std::int64_t columns, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(columns), -kInfinity);
  std::copy(first.begin(), first.end(), values.begin());
  return cast(Tensor::from(values, {1, columns}), dtype);
}

bool all_nan(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("softmax of masked elements is 0, and of large ones does not overflow") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t columns : {3, 40, 300}) {
      INFO(name_of(dtype) << ", " << columns << " columns");
      const Tensor x = row_of({1e4, 1e4}, columns, dtype);
      const std::vector<double> p = softmax(x, 1).to_vector<double>(), log_p = log_softmax(x, 1).to_vector<double>();
      CHECK((p[0] == 0.5 && p[1] == 0.5 && p[2] == 0.0));
      CHECK(std::abs(log_p[0] + std::log(2.0)) <= 0x1p-23);
      CHECK(log_p[2] == -kInfinity);
    }
  }
}

TEST_CASE("rows of NaN, plus infinity or minus infinity alone become NaN, and no other row does") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t columns : {3, 40, 300}) {
      INFO(name_of(dtype) << ", " << columns << " columns");
      for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
        std::vector<double> values(static_cast<std::size_t>(2 * columns), bad == -kInfinity ? bad : 1.0);
        values[static_cast<std::size_t>(columns) - 1] = bad;
        std::fill(values.begin() + columns, values.end(), 2.0);
        const Tensor x = cast(Tensor::from(values, {2, columns}), dtype);
        for (const Tensor& y : {softmax(x, 1), log_softmax(x, 1)}) {
          CHECK(all_nan(y.narrow(0, 0, 1)));
          CHECK(std::isfinite(y.select(0, 1).to_vector<double>().back()));
        }
      }
    }
  }
}

TEST_CASE("the gradient of a masked element is 0 for softmax") {
  const Tensor x = set_requires_grad(row_of({1.0, 2.0}, 4, DType::f32));
  backward(softmax(x, -1), Tensor::from<float>({1, 2, 3, 4}, {1, 4}));
  const std::vector<float> gradient = grad(x).to_vector<float>();
  CHECK((gradient[2] == 0.0f && gradient[3] == 0.0f && gradient[0] < 0.0f && gradient[1] > 0.0f));
}

TEST_CASE("softmax over channels gives the same of both layouts, and keeps channels_last") {
  const Tensor x = random_images({2, 5, 4, 3}, 1);
  const Tensor last = x.contiguous(Layout::channels_last), first = x.contiguous();
  CHECK(softmax(last, 1).is_dense(Layout::channels_last));
  CHECK(softmax(last, 1).to_vector<float>() == softmax(first, 1).to_vector<float>());
  CHECK(softmax(first, 3).is_dense(Layout::row_major));
}

TEST_CASE("softmax of halves is computed and returned in f32, and its gradient is half") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = set_requires_grad(Tensor::zeros({2, 3}, {.dtype = dtype}));
    const Tensor p = softmax(x, 1);
    CHECK(p.dtype() == DType::f32);
    CHECK(p.to_vector<float>().front() == 1.0f / 3.0f);
    backward(p, Tensor::from<float>({1, 0, 0, 0, 0, 0}, {2, 3}));
    CHECK(grad(x).dtype() == dtype);
  }
}

TEST_CASE("softmax does not depend on the number of threads") {
  const Tensor values = random_images({700, 37}, 1, 3.0f), weights = random_images({700, 37}, 2);
  const auto run = [&](int threads) {
    const ThreadScope scope(threads);
    const Tensor x = set_requires_grad(values.clone());
    const Tensor y = softmax(x, 1), log_y = log_softmax(x, 1);
    backward(sum(y * log_y * weights));
    return std::vector{y.detach(), log_y.detach(), grad(x)};
  };
  const std::vector<Tensor> one = run(1), three = run(3);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("the negative log likelihood of log_softmax is softmax_cross_entropy, gradients included") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double unit = dtype == DType::f32 ? 0x1p-24 : 0x1p-53;
    const Tensor logits = cast(random_images({50, 10}, 1, 3.0f), dtype);
    std::vector<std::int64_t> classes;
    for (std::int64_t n = 0; n < 50; ++n) classes.push_back(7 * n % 10);
    const Tensor labels = Tensor::from(classes, {50});
    const auto run = [&](const auto& loss_of) {
      const Tensor x = set_requires_grad(logits.clone());
      const Tensor loss = loss_of(x);
      backward(loss);
      return std::pair(loss.item(), grad(x).to_vector<double>());
    };
    const auto [fused, fused_gradient] = run([&](const Tensor& x) { return softmax_cross_entropy(x, labels); });
    const auto [composed, gradient] = run([&](const Tensor& x) { return nll_loss(log_softmax(x, 1), labels); });
    // Sums over 10 classes and 50 rows of numbers up to 20.
    CHECK(std::abs(composed - fused) <= 40 * unit * 20.0);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      CHECK(std::abs(gradient[i] - fused_gradient[i]) <= 40 * unit / 50.0);
  }
}

TEST_CASE("rows of an ignored label cost nothing, get no gradient, and do not count in the mean") {
  const Tensor logits = cast(random_images({4, 3}, 5, 2.0f), DType::f64);
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{2, -100, 0, -100}, {4});
  const Tensor x = set_requires_grad(logits.clone());
  const Tensor loss = softmax_cross_entropy(x, labels, {.ignore_index = -100});
  backward(loss);
  const Tensor kept = set_requires_grad(concat({logits.narrow(0, 0, 1), logits.narrow(0, 2, 1)}, 0));
  const Tensor expected = softmax_cross_entropy(kept, Tensor::from(std::vector<std::int64_t>{2, 0}, {2}));
  backward(expected);
  CHECK(std::abs(loss.item() - expected.item()) <= 16 * 0x1p-53 * 4.0);
  const std::vector<double> gradient = grad(x).to_vector<double>(), of_kept = grad(kept).to_vector<double>();
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK((gradient[3 + c] == 0.0 && gradient[9 + c] == 0.0));
    CHECK(std::abs(gradient[c] - of_kept[c]) <= 16 * 0x1p-53);
    CHECK(std::abs(gradient[6 + c] - of_kept[3 + c]) <= 16 * 0x1p-53);
  }
  const Tensor none = Tensor::full({4}, -100.0, {.dtype = DType::i64});
  CHECK(std::isnan(softmax_cross_entropy(logits, none, {.ignore_index = -100}).item()));
  CHECK(softmax_cross_entropy(logits, none, {.ignore_index = -100, .reduction = Reduction::sum}).item() == 0.0);
}

TEST_CASE("an ignored class is not looked at, even where its log probability is infinite") {
  const Tensor log_p = Tensor::from<float>({-HUGE_VALF, -1.0f, -2.0f, -HUGE_VALF}, {2, 2});
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 0}, {2});
  CHECK(nll_loss(log_p, labels, Reduction::none, {.ignore_index = 0}).to_vector<float>() ==
        std::vector<float>{0.0f, 0.0f});
}
