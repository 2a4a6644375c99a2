// Softmax cross-entropy kernels on the GPU against the reference.
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kU = 0x1p-24;

Tensor labels_of(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t n = 0; n < rows; ++n) labels.push_back((7 * n + 3) % classes);
  return Tensor::from(labels, {rows});
}

struct Result {
  double loss;
  Tensor probabilities, gradient;
};

Result run(const Tensor& logits, const Tensor& labels, double smoothing, Place place = Place::dense) {
  const Tensor loss = empty_at(Place::unaligned, {}, DType::f32),
               p = empty_at(Place::unaligned, logits.shape(), DType::f32),
               gradient = empty_at(place, logits.shape(), logits.dtype()),
               grad_loss = put(Tensor::full({}, 0.5, {.dtype = DType::f16}));
  kernels::softmax_cross_entropy_forward(logits, labels, smoothing, Out(loss), Out(p));
  kernels::softmax_cross_entropy_backward(p, labels, smoothing, grad_loss, Out(gradient));
  return {loss.item(), p, gradient};
}

}  // namespace

// Rows of a warp, of a block, and longer ones; one class; more rows than a grid has warps.
TEST_CASE("softmax cross-entropy on the GPU agrees with the reference in f64", "[cuda][loss]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 10}, Shape{37, 33}, Shape{3, 128}, Shape{4, 129}, Shape{2, 1024},
                             Shape{3, 1031}, Shape{2, 3000}}) {
    const std::int64_t rows = shape[0], classes = shape[1];
    for (const DType dtype : kKernelDtypes) {
      for (const Place place : {Place::dense, Place::unaligned, Place::gaps}) {
        for (const double smoothing : {0.0, 0.1}) {
          if (place != Place::dense && (dtype != DType::f32 || smoothing == 0.0)) continue;
          INFO("logits " << to_string(shape) << ", " << name_of(dtype) << ", " << name_of(place) << ", smoothing "
                         << smoothing);
          const Tensor logits = values_of(shape, dtype, false, 1, 3.0), labels = labels_of(rows, classes);
          const Tensor expected_loss = Tensor::empty({}, {.dtype = DType::f64}), expected_p = wide_like(logits),
                       expected_gradient = wide_like(logits), half = Tensor::full({}, 0.5, {.dtype = DType::f64});
          kernels::reference::softmax_cross_entropy_forward(wide(logits), labels, smoothing, Out(expected_loss),
                                                            Out(expected_p));
          kernels::reference::softmax_cross_entropy_backward(expected_p, labels, smoothing, half,
                                                             Out(expected_gradient));
          const Result result = run(put(logits, place), put(labels, place), smoothing, place);
          // A term is exp of a difference of up to 30, rounded, and a few roundings of exp; a sum over a row adds a
          // rounding per class at most. The loss is a logarithm of the sum beside exact or such terms.
          const double terms = 30.0 + 8.0 + static_cast<double>(std::min<std::int64_t>(classes, 64));
          CHECK(std::abs(result.loss - expected_loss.item()) <= terms * kU * 3.0 + kU * expected_loss.item());
          const std::vector<double> p = expected_p.to_vector<double>();
          CHECK(first_outside(result.probabilities, expected_p,
                              [&](std::size_t i) { return 2.0 * terms * kU * p[i] + 0x1p-149; }) == "");
          const std::vector<double> gradient = expected_gradient.to_vector<double>();
          const double scale = 0.5 / static_cast<double>(rows);
          CHECK(first_outside(result.gradient, expected_gradient, [&](std::size_t i) {
                  return scale * (2.0 * terms * kU * p[i] + 4.0 * kU) + roundoff(dtype) * std::abs(gradient[i]) +
                         0x1p-24 * roundoff(dtype) * 0x1p10;
                }) == "");
        }
      }
    }
  }
}

TEST_CASE("softmax cross-entropy on the GPU: more rows than the grid takes at once", "[cuda][loss]") {
  if (!has_gpu()) return;
  const std::int64_t classes = GENERATE(4, 129);
  // Equal logits: the loss is the logarithm of the number of classes.
  const std::int64_t rows = classes == 4 ? 132 * 8 * 8 + 3 : 132 * 8 + 3;
  const Tensor logits = put(Tensor::full({rows, classes}, 3.0, {.dtype = DType::bf16})),
               labels = put(labels_of(rows, classes));
  const Tensor loss = empty_at(Place::dense, {}, DType::f32);
  kernels::softmax_cross_entropy_forward(logits, labels, 0.0, Out(loss), {});
  CHECK(std::abs(loss.item() - std::log(static_cast<double>(classes))) <=
        4 * kU * std::log(static_cast<double>(classes)));
}

TEST_CASE("softmax cross-entropy on the GPU: large logits, masked classes, no rows", "[cuda][loss]") {
  if (!has_gpu()) return;
  // In registers of a warp, of a block, and beyond: the same three logits among masked ones.
  for (const std::int64_t classes : {3, 300, 2000}) {
    INFO(classes << " classes");
    const Tensor logits = Tensor::full({3, classes}, -INFINITY);
    const std::vector<float> rows{1e4f, 0.0f, -1e4f, 3e38f, -3e38f, 0.0f, 1.0f, 1.0f, -INFINITY};
    logits.narrow(1, 0, 3).copy_from(Tensor::from(rows, {3, 3}));
    const Tensor labels = Tensor::from(std::vector<std::int64_t>{2, 0, 1}, {3});
    const Result result = run(put(logits), put(labels), 0.0);
    CHECK(std::abs(result.loss - (2e4 + std::log(2.0)) / 3.0) <= kU * 1e4);
    CHECK(result.probabilities.narrow(1, 0, 3).to_vector<float>() == std::vector<float>{1, 0, 0, 1, 0, 0, 0.5, 0.5, 0});
    logits.fill(std::nan(""));
    CHECK(std::isnan(run(put(logits), put(labels), 0.0).loss));
  }
  const Result none = run(put(Tensor::empty({0, 10})), put(labels_of(0, 10)), 0.0);
  CHECK(std::isnan(none.loss));
}

TEST_CASE("labels outside of the classes make loss and gradient NaN on the GPU, and require_labels names them",
          "[cuda][loss]") {
  if (!has_gpu()) return;
  for (const std::int64_t classes : {10, 300, 2000}) {
    for (const std::int64_t label : {std::int64_t{-1}, classes, std::int64_t{1} << 40}) {
      const Tensor logits = values_of({3, classes}, DType::f32, false, 2);
      const Tensor labels = Tensor::from(std::vector<std::int64_t>{1, label, 2}, {3}), there = put(labels, Place::gaps);
      const Result result = run(put(logits), there, 0.1);
      CHECK(std::isnan(result.loss));
      for (const std::int64_t row : {0, 1, 2})
        CHECK(std::isnan(result.gradient.narrow(0, row, 1).to_vector<float>().back()) == (row == 1));
      const std::string text =
          fmt::format("softmax_cross_entropy: label 1 of the batch is {}, outside of the {} classes", label, classes);
      CHECK(error_of([&] { kernels::require_labels(there, classes); }) == text);
      CHECK(error_of([&] {
              kernels::softmax_cross_entropy_forward(logits, labels, 0.0, Out(Tensor::empty({})), {});
            }) == text);
    }
    kernels::require_labels(put(labels_of(3, classes)), classes);
  }
}

TEST_CASE("softmax cross-entropy on the GPU gives the same bits twice", "[cuda][loss]") {
  if (!has_gpu()) return;
  const Tensor logits = put(values_of({50, 37}, DType::f32, false, 3, 3.0)), labels = put(labels_of(50, 37));
  const Result first = run(logits, labels, 0.1), second = run(logits, labels, 0.1);
  CHECK(first.loss == second.loss);
  CHECK(same_values(first.gradient, second.gradient));
}

TEST_CASE("softmax cross-entropy on the GPU refuses f64 and mixed devices", "[cuda][loss]") {
  if (!has_gpu()) return;
  const TensorOptions f64{.dtype = DType::f64, .device = kGpu};
  const Tensor wide_logits = Tensor::zeros({2, 3}, f64), logits = put(Tensor::zeros({2, 3})), labels = labels_of(2, 3),
               there = put(labels), loss = put(Tensor::zeros({}));
  CHECK_THAT(error_of([&] {
               kernels::softmax_cross_entropy_forward(wide_logits, there, 0.0, Out(Tensor::zeros({}, f64)), {});
             }),
             ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(
      error_of([&] { kernels::softmax_cross_entropy_backward(wide_logits, there, 0.0, loss, Out(wide_logits)); }),
      ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(error_of([&] { kernels::softmax_cross_entropy_forward(logits, labels, 0.0, Out(loss), {}); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { kernels::softmax_cross_entropy_forward(logits, there, 0.0, Out(Tensor::zeros({})), {}); }),
             ContainsText("move one of them"));
  CHECK_THAT(
      error_of([&] { kernels::softmax_cross_entropy_backward(logits, there, 0.0, Tensor::zeros({}), Out(logits)); }),
      ContainsText("move one of them"));
}
