// Softmax cross-entropy beyond the op table: large logits, the empty batch, dtypes, threads.
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

double loss_of(const Tensor& logits, const Tensor& labels, double smoothing, const Tensor& probabilities = {}) {
  const Tensor loss = Tensor::full({}, std::nan(""), {.dtype = kernels::softmax_cross_entropy_dtype(logits.dtype())});
  kernels::softmax_cross_entropy_forward(logits, labels, smoothing, Out(loss), Out(probabilities));
  return loss.item();
}

Tensor labels_of(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t n = 0; n < rows; ++n) labels.push_back((7 * n + 3) % classes);
  return Tensor::from(labels, {rows});
}

}  // namespace

TEST_CASE("equal logits cost the logarithm of the number of classes") {
  const Tensor logits = Tensor::full({5, 10}, 3.0);
  for (const double smoothing : {0.0, 0.3}) {
    CHECK(std::abs(loss_of(logits, labels_of(5, 10), smoothing) - std::log(10.0)) <= 4 * 0x1p-24 * std::log(10.0));
  }
}

TEST_CASE("large logits neither overflow nor lose the loss") {
  const Tensor logits = Tensor::from(std::vector<float>{1e4f, 0.0f, -1e4f, 3e38f, -3e38f, 0.0f}, {2, 3});
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{2, 0}, {2}), p = Tensor::zeros({2, 3});
  CHECK(loss_of(logits, labels, 0.0, p) == 1e4);
  CHECK(p.to_vector<float>() == std::vector<float>{1, 0, 0, 1, 0, 0});
}

TEST_CASE("a masked class, of logit minus infinity, costs nothing") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Tensor logits = Tensor::zeros({1, 3}, {.dtype = dtype});
  logits.narrow(1, 1, 1).fill(-INFINITY);
  CHECK(std::abs(loss_of(logits, Tensor::zeros({1}, {.dtype = DType::i64}), 0.0) - std::log(2.0)) <= 0x1p-24);
}

TEST_CASE("the mean over no rows is NaN, its gradient empty") {
  const Tensor logits = Tensor::empty({0, 10}), labels = labels_of(0, 10), p = Tensor::empty({0, 10});
  CHECK(std::isnan(loss_of(logits, labels, 0.0, p)));
  kernels::softmax_cross_entropy_backward(p, labels, 0.0, Tensor::full({}, 1.0), Out(logits));
}

TEST_CASE("half-precision logits give an f32 loss") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const Tensor logits = Tensor::zeros({2, 8}, {.dtype = dtype});
  CHECK(kernels::softmax_cross_entropy_dtype(dtype) == DType::f32);
  CHECK(std::abs(loss_of(logits, labels_of(2, 8), 0.0) - std::log(8.0)) <= 2 * 0x1p-24 * std::log(8.0));
  CHECK_THAT(error_of([&] {
               kernels::softmax_cross_entropy_forward(logits, labels_of(2, 8), 0.0,
                                                      Out(Tensor::zeros({}, {.dtype = dtype})), {});
             }),
             ContainsText("the loss must be f32[]"));
}

TEST_CASE("gradients of a row sum to zero and do not depend on the number of threads") {
  const Tensor logits = random_images({700, 37}, 1, 3.0f), labels = labels_of(700, 37);
  const double smoothing = 0.1;
  const auto run = [&](int threads) {
    const ThreadScope scope(threads);
    const Tensor p = poisoned_like(logits), gradient = poisoned_like(logits);
    const double loss = loss_of(logits, labels, smoothing, p);
    kernels::softmax_cross_entropy_backward(p, labels, smoothing, Tensor::full({}, 2.0), Out(gradient));
    return std::pair(loss, gradient);
  };
  const auto [loss, gradient] = run(1);
  const auto [same_loss, same_gradient] = run(3);
  CHECK(loss == same_loss);
  CHECK(same_bits(gradient, same_gradient));
  const auto values = gradient.to_vector<double>();
  for (std::size_t n = 0; n < 700; ++n) {
    double sum = 0.0;
    for (std::size_t c = 0; c < 37; ++c) sum += values[n * 37 + c];
    // 37 probabilities, each known to a few roundings of numbers that sum to 1, times 2 / 700.
    CHECK(std::abs(sum) <= 2.0 / 700.0 * 8 * 0x1p-24 * 2.0);
  }
}
