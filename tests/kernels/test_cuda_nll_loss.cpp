// The negative log likelihood on the GPU beyond the op table: labels outside of the classes, places, dtypes.
#include "tandem/kernels/loss/nll_loss.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("labels outside of the classes make nll_loss and its gradient NaN on the GPU", "[cuda][loss]") {
  if (!has_gpu()) return;
  for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 40}) {
    const Tensor labels = put(Tensor::from(std::vector<std::int64_t>{1, label, 2}, {3}), Place::gaps);
    const Tensor log_p = put(Tensor::full({3, 4}, -2.0), Place::gaps), losses = empty_at(Place::gaps, {3}, DType::f32),
                 grad = empty_at(Place::unaligned, {3, 4}, DType::bf16);
    kernels::nll_loss_forward(log_p, labels, Out(losses));
    kernels::nll_loss_backward(labels, put(Tensor::full({3}, 0.5, {.dtype = DType::f16})), Out(grad));
    const std::vector<float> values = losses.to_vector<float>();
    CHECK((values[0] == 2.0f && std::isnan(values[1]) && values[2] == 2.0f));
    for (const std::int64_t row : {0, 1, 2})
      CHECK(std::isnan(grad.narrow(0, row, 1).to_vector<float>().back()) == (row == 1));
    CHECK(grad.narrow(0, 2, 1).to_vector<float>() == std::vector<float>{0, 0, -0.5f, 0});
    CHECK(error_of([&] { kernels::require_labels(labels, 4, "nll_loss"); }) ==
          fmt::format("nll_loss: label 1 of the batch is {}, outside of the 4 classes", label));
  }
}

TEST_CASE("nll_loss on the GPU refuses f64 and mixed devices", "[cuda][loss]") {
  if (!has_gpu()) return;
  const TensorOptions f64{.dtype = DType::f64, .device = kGpu};
  const Tensor wide_rows = Tensor::zeros({2, 3}, f64), rows = put(Tensor::zeros({2, 3}));
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 2}, {2}), there = put(labels);
  CHECK_THAT(error_of([&] { kernels::nll_loss_forward(wide_rows, there, Out(Tensor::zeros({2}, f64))); }),
             ContainsText("nll_loss: CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(error_of([&] { kernels::nll_loss_forward(rows, labels, Out(Tensor::zeros({2}))); }),
             ContainsText("move one of them"));
}

TEST_CASE("ignored labels cost nothing on the GPU, whatever their number, and others outside stay NaN",
          "[cuda][loss]") {
  if (!has_gpu()) return;
  const Tensor labels = put(Tensor::from(std::vector<std::int64_t>{-100, 1, 9}, {3}), Place::gaps);
  const Tensor log_p = put(Tensor::from<float>({-1, -2, -3, -4, -5, -6}, {3, 2}), Place::gaps);
  const Tensor weight = put(Tensor::from<float>({2.0f, 0.5f}, {2}), Place::gaps);
  const kernels::LabelWeights weights{.of_classes = weight, .ignore_index = -100};
  const Tensor losses = empty_at(Place::gaps, {3}, DType::f32), counts = empty_at(Place::gaps, {3}, DType::f32);
  kernels::nll_loss_forward(log_p, labels, Out(losses), weights, Out(counts));
  const std::vector<float> values = losses.to_vector<float>(), of_rows = counts.to_vector<float>();
  CHECK((values[0] == 0.0f && values[1] == 2.0f && std::isnan(values[2])));
  CHECK((of_rows[0] == 0.0f && of_rows[1] == 0.5f && std::isnan(of_rows[2])));
  const Tensor grad = empty_at(Place::gaps, {3, 2}, DType::f32);
  kernels::nll_loss_backward(labels, put(Tensor::full({3}, 4.0)), Out(grad), weights);
  const std::vector<float> gradient = grad.to_vector<float>();
  CHECK((gradient[0] == 0.0f && gradient[1] == 0.0f && gradient[2] == 0.0f && gradient[3] == -2.0f));
  CHECK((std::isnan(gradient[4]) && std::isnan(gradient[5])));
}
