// Losses beyond the op table: ends of the range, empty batches, labels, what is kept for backward.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/reduction.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;

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
