// Who runs a convolution is decided once per layer and step, and kept for its gradients.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/conv/plan.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

namespace tandem::test {
namespace {

using namespace autograd;

Tensor leaf(const Shape& shape, DType dtype, Device device) {
  const Layout layout = shape.rank() == 4 ? Layout::channels_last : Layout::row_major;
  return set_requires_grad(Tensor::full(shape, 0.5, {dtype, layout, device}));
}

/// How often it was decided in one step of six layers, of every kind: forward, and backward if `recorded`.
std::int64_t choices_of_step(DType dtype, Device device, bool recorded) {
  const GradMode mode(recorded);
  const Conv2dOptions options{.padding = {1, 1}, .impl = kernels::ConvImpl::fused};
  const auto weight = [&](std::int64_t channels) { return leaf({16, channels, 3, 3}, dtype, device); };
  const auto bias = [&] { return leaf({16}, dtype, device); };
  const std::int64_t before = kernels::conv_choices();
  Tensor y = conv_bias_relu(Tensor::full({2, 3, 16, 16}, 1.0, {dtype, Layout::channels_last, device}), weight(3),
                            bias(), options);
  y = conv_bias_relu_pool(y, weight(16), bias(), options);
  y = conv2d(y, weight(16), bias(), options);
  y = conv2d_with_moments(y, weight(16), bias(), options).y;
  y = conv2d_pool_with_moments(y, weight(16), bias(), options).y;
  y = conv2d_pool(y, weight(16), bias(), options);
  if (recorded) backward(sum(y));
  return kernels::conv_choices() - before;
}

}  // namespace

TEST_CASE("who runs a convolution is decided once per layer and step") {
  for (const bool recorded : {true, false})
    for (const DType dtype : {DType::f32, DType::f64}) CHECK(choices_of_step(dtype, Device{}, recorded) == 6);
}

TEST_CASE("who runs a convolution on a GPU is decided once per layer and step", "[cuda]") {
  if (!has_gpu()) return;
  for (const bool recorded : {true, false})
    for (const DType dtype : {DType::f16, DType::f32}) CHECK(choices_of_step(dtype, kGpu, recorded) == 6);
}

TEST_CASE("a pass without a plan decides for itself") {
  const auto ones = [](const Shape& shape) { return Tensor::full(shape, 1.0, {.layout = Layout::channels_last}); };
  const Tensor x = ones({1, 3, 4, 4}), w = ones({8, 3, 1, 1}), y = ones({1, 8, 4, 4});
  const std::int64_t before = kernels::conv_choices();
  kernels::conv2d_forward(x, w, {}, {}, Out(y));
  CHECK(kernels::conv_choices() == before + 1);
  const kernels::ConvPlan plan = kernels::plan_conv(x, w, {}, {.grad_w = true});
  kernels::conv2d_forward(plan, x, w, {}, Out(y));
  kernels::conv2d_backward_weight(plan, x, y, Out(w));
  CHECK(kernels::conv_choices() == before + 2);
}

}  // namespace tandem::test
