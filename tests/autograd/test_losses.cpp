// Losses beyond the op table: ends of the range, empty batches, labels, what is kept for backward.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/reduction.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;
using tandem::test::ContainsText;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Loss and gradient of one logit against one target.
std::pair<double, double> binary(double logit, double target, DType dtype) {
  const Tensor x = set_requires_grad(Tensor::full({}, logit, {.dtype = dtype}));
  const Tensor loss = binary_cross_entropy_with_logits(x, Tensor::full({}, target, {.dtype = dtype}));
  backward(loss);
  return {loss.item(), grad(x).item()};
}

}  // namespace

TEST_CASE("binary cross-entropy neither overflows nor loses small losses") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    INFO(name_of(dtype));
    const double unit = dtype == DType::f32 ? 0x1p-24 : 0x1p-53;
    for (const double logit : {0.5, 3.0, 20.0, 60.0}) {
      const double small = std::log1p(std::exp(-logit));
      CHECK(std::abs(binary(logit, 1.0, dtype).first - small) <= 8 * unit * small);
      CHECK(std::abs(binary(-logit, 0.0, dtype).first - small) <= 8 * unit * small);
      CHECK(std::abs(binary(logit, 0.0, dtype).first - (logit + small)) <= 8 * unit * (logit + small));
    }
    CHECK(binary(1e30, 0.0, dtype).first == static_cast<double>(dtype == DType::f32 ? 1e30f : 1e30));
    CHECK(binary(1e30, 1.0, dtype) == std::pair(0.0, 0.0));
    CHECK(binary(-1e30, 1.0, dtype).second == -1.0);
    CHECK(binary(kInfinity, 0.0, dtype).first == kInfinity);
    CHECK(std::isnan(binary(std::nan(""), 0.5, dtype).first));
    CHECK(std::isnan(binary(kInfinity, 1.0, dtype).first));  // as PyTorch has it
  }
}

TEST_CASE("the weight of positives counts where the target is 1, and not where it is 0") {
  const Tensor x = Tensor::from<float>({2, -1, 2, -1}, {2, 2}), target = Tensor::from<float>({1, 1, 0, 0}, {2, 2});
  const Tensor weight = Tensor::from<float>({3, 0.5}, {2});
  const auto plain = binary_cross_entropy_with_logits(x, target, Reduction::none).to_vector<double>();
  const auto weighted = binary_cross_entropy_with_logits(x, target, Reduction::none, weight).to_vector<double>();
  const std::vector<double> factors{3, 0.5, 1, 1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(weighted[i] - factors[i] * plain[i]) <= 0x1p-22 * plain[i]);
}

TEST_CASE("cross-entropy of class probabilities is that of classes where these are certain, and their mean else") {
  const double smoothing = GENERATE(0.0, 0.1, 1.0);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    INFO(name_of(dtype) << ", smoothing " << smoothing);
    const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
    const auto logits = [dtype] {
      return set_requires_grad(cast(Tensor::from<double>({0.5, -1, 3, 2, 0.25, -4, 1, 1}, {2, 4}), dtype).detach());
    };
    const Tensor labels = Tensor::from<std::int64_t>({2, 0}, {2}), swapped = Tensor::from<std::int64_t>({1, 0}, {2});
    const Tensor certain = Tensor::from<float>({0, 0, 1, 0, 1, 0, 0, 0}, {2, 4});
    const Tensor mixed = Tensor::from<float>({0, 0.25, 0.75, 0, 1, 0, 0, 0}, {2, 4});
    const Tensor a = logits(), b = logits(), c = logits(), d = logits();
    const Tensor loss_a = softmax_cross_entropy(a, certain, smoothing),
                 loss_b = softmax_cross_entropy(b, labels, smoothing);
    const Tensor loss_c = softmax_cross_entropy(c, mixed, smoothing),
                 loss_d = softmax_cross_entropy(d, swapped, smoothing);
    CHECK(loss_a.dtype() == loss_b.dtype());
    const double bound = 64 * unit;  // a few roundings of numbers below 8
    CHECK(std::abs(loss_a.item() - loss_b.item()) <= bound);
    CHECK(std::abs(loss_c.item() - (0.75 * loss_b.item() + 0.25 * loss_d.item())) <= bound);
    for (const Tensor& loss : {loss_a, loss_b, loss_c, loss_d}) backward(loss);
    const auto of_a = grad(a).to_vector<double>(), of_b = grad(b).to_vector<double>();
    const auto of_c = grad(c).to_vector<double>(), of_d = grad(d).to_vector<double>();
    const double rounded = dtype == DType::bf16 ? 0x1p-8 : bound;
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      CHECK(std::abs(of_a[i] - of_b[i]) <= rounded);
      CHECK(std::abs(of_c[i] - (0.75 * of_b[i] + 0.25 * of_d[i])) <= rounded);
    }
  }
  const Tensor logits = Tensor::zeros({2, 3});
  CHECK_THROWS_WITH(softmax_cross_entropy(logits, Tensor::zeros({2, 4})),
                    ContainsText("must have the shape of the logits, [N, C], got f32[2, 4] and f32[2, 3]"));
  CHECK_THROWS_WITH(softmax_cross_entropy(logits, logits, 1.5), ContainsText("must be in [0, 1], got 1.5"));
}

TEST_CASE("the mean of no losses is NaN, their sum is 0") {
  const Tensor none = Tensor::empty({0, 3}), no_labels = Tensor::empty({0}, {.dtype = DType::i64});
  CHECK(std::isnan(mse_loss(none, none).item()));
  CHECK(mse_loss(none, none, Reduction::sum).item() == 0.0);
  CHECK(l1_loss(none, none, Reduction::none).shape() == Shape{0, 3});
  CHECK(std::isnan(nll_loss(none, no_labels).item()));
  CHECK(nll_loss(none, no_labels, Reduction::sum).item() == 0.0);
}

TEST_CASE("the gradient of l1_loss is 0 where input and target are equal") {
  const Tensor x = set_requires_grad(Tensor::from<float>({1, 2, 3}, {3}));
  backward(l1_loss(x, Tensor::full({3}, 2.0), Reduction::sum));
  CHECK(grad(x).to_vector<float>() == std::vector<float>{-1, 0, 1});
}

TEST_CASE("losses of halves are f32, and their gradients halves") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = set_requires_grad(Tensor::full({2, 300}, 300.0, {.dtype = dtype}));
    const Tensor loss = mse_loss(x, Tensor::zeros({2, 300}), Reduction::sum);  // beyond the range of f16
    CHECK(loss.dtype() == DType::f32);
    CHECK(loss.item() == 600.0 * 90000.0);
    const Tensor nll = nll_loss(x, Tensor::zeros({2}, {.dtype = DType::i64}), Reduction::none);
    CHECK(nll.dtype() == DType::f32);
    backward(nll, Tensor::full({2}, 2.0));
    CHECK(grad(x).dtype() == dtype);
    CHECK(grad(x).select(0, 1).to_vector<float>().front() == -2.0f);
  }
}

TEST_CASE("a target gets a gradient, too, and only what is asked for is computed") {
  const Tensor x = Tensor::from<float>({1, 5}, {2}), target = set_requires_grad(Tensor::from<float>({2, 2}, {2}));
  backward(mse_loss(x, target, Reduction::sum));
  CHECK(grad(target).to_vector<float>() == std::vector<float>{2, -6});
  CHECK(!grad(x).defined());
}

TEST_CASE("rows that do not count leave no NaN in a smoothed cross-entropy") {
  const CrossEntropyOptions options{.ignore_index = -100, .label_smoothing = 0.1};
  const std::vector<float> values{1, 2, 3, 3, 1, 2};
  const auto run = [&](std::vector<float> logits, std::vector<std::int64_t> labels) {
    const Tensor x = set_requires_grad(Tensor::from<float>(logits, {2, 3}));
    const Tensor loss = softmax_cross_entropy(x, Tensor::from<std::int64_t>(labels, {2}), options);
    backward(loss);
    return std::pair(loss.item(), grad(x).to_vector<float>());
  };
  const auto [none, no_gradient] = run(values, {-100, -100});
  CHECK(std::isnan(none));  // a mean of nothing
  CHECK(no_gradient == std::vector<float>(6, 0.0f));
  const auto [one, gradient] = run(values, {-100, 2});
  for (const double spoilt : {kInfinity, std::nan("")}) {
    std::vector<float> logits = values;
    logits[1] = static_cast<float>(spoilt);
    const auto [loss, of_it] = run(logits, {-100, 2});
    CHECK(loss == one);
    CHECK(std::vector<float>(of_it.begin() + 3, of_it.end()) ==
          std::vector<float>(gradient.begin() + 3, gradient.end()));
  }
}
