// Convolution on the GPU against the reference in f64: every family and pass, exact on whole numbers, bounded on random
// ones.
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/gemm/product_plan.h"
#include "tests/kernels/cuda_conv_support.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

/// Channels, images and kernels on both sides of fours, bytes of a mask and steps; then other strides, paddings,
/// dilations and groups.
std::vector<ConvCase> small_cases() {
  std::vector<ConvCase> cases{
      square_case(1, 1, 1, 1, 1, 1, 0),          square_case(2, 3, 5, 4, 8, 3, 1),
      square_case(1, 8, 4, 5, 33, 3, 1),         square_case(1, 33, 3, 3, 5, 1, 0),
      square_case(3, 8, 3, 3, 8, 3, 1),          square_case(2, 4, 4, 4, 12, 3, 1),
      square_case(2, 1, 6, 6, 5, 5, 2),          square_case(1, 8, 7, 7, 4, 1, 0, 2),
      square_case(2, 3, 6, 5, 8, 3, 1, 2),       square_case(1, 4, 9, 9, 8, 3, 2, 1, 2),
      square_case(1, 5, 8, 9, 3, 3, 1, 2, 2),    square_case(2, 8, 4, 4, 8, 3, 1, 1, 1, 2),
      square_case(2, 9, 5, 4, 9, 3, 1, 1, 1, 9), square_case(1, 33, 5, 4, 33, 3, 1, 2, 1, 33),
      square_case(1, 3, 4, 4, 6, 3, 1, 1, 1, 3), square_case(1, 12, 6, 6, 6, 3, 2, 2, 1, 3),
      square_case(1, 3, 9, 9, 8, 7, 3, 2),       square_case(2, 2, 4, 4, 3, 2, 0, 3),
      square_case(1, 1, 3, 3, 8, 1, 2),
  };
  cases.push_back({1, 5, 7, 9, 8, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}});
  cases.push_back({1, 5, 5, 6, 3, 1, 3, {{1, 1}, {0, 1}, {1, 1}, 1}});
  // Strides and dilations with and without a common factor; images smaller than a stride.
  cases.push_back({1, 4, 9, 10, 8, 3, 3, {{4, 3}, {2, 2}, {2, 3}, 1}});
  cases.push_back({1, 4, 2, 3, 8, 2, 1, {{3, 4}, {1, 0}, {1, 1}, 1}});
  return cases;
}

const ConvFamily kNaive = passes_of("naive"), kTile = passes_of("tile");

void check_families(const ConvCase& one, DType dtype, bool whole, bool fused) {
  check_passes(kNaive, one, dtype, whole, fused);
  if (k::cuda::tile::obstacle(k::PassKind::forward, one.geometry(), {dtype, kGpu}).empty())
    check_passes(kTile, one, dtype, whole, fused);
}

}  // namespace

TEST_CASE("convolution passes on the GPU are exact on whole numbers", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : small_cases()) check_families(one, DType::f32, true, true);
}

TEST_CASE("convolution passes on the GPU are exact without bias and mask", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : {square_case(2, 3, 5, 4, 8, 3, 1), square_case(2, 8, 3, 3, 8, 3, 1, 2)})
    for (const DType dtype : kGpuDTypes) check_families(one, dtype, true, false);
}

TEST_CASE("convolution passes on the GPU in half types", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : {square_case(1, 3, 5, 4, 8, 3, 1), square_case(2, 8, 4, 3, 8, 3, 1),
                              square_case(1, 4, 4, 4, 12, 3, 1, 2), square_case(1, 9, 5, 4, 9, 3, 1, 1, 1, 9)})
    for (const DType dtype : {DType::f16, DType::bf16}) check_families(one, dtype, true, true);
}

TEST_CASE("convolution passes on the GPU round no more than their sums explain", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one : {square_case(2, 3, 5, 4, 8, 3, 1), square_case(1, 8, 4, 5, 33, 3, 1),
                              square_case(1, 12, 6, 6, 6, 3, 2, 2, 1, 3)})
    for (const DType dtype : kGpuDTypes) check_families(one, dtype, false, true);
}

TEST_CASE("convolution passes on the GPU add parts of long sums", "[cuda][conv]") {
  if (!has_gpu()) return;
  CHECK(k::plan_product(9, 4, 288).parts == 2);
  for (const DType dtype : kGpuDTypes) {
    check_passes(kTile, square_case(1, 32, 3, 3, 4, 3, 1), dtype, true, true);   // forward
    check_passes(kTile, square_case(1, 29, 3, 3, 8, 3, 1), dtype, true, true);   // forward, mask of its own
    check_passes(kTile, square_case(1, 4, 3, 3, 32, 3, 1), dtype, true, true);   // backward_input
    check_passes(kTile, square_case(1, 4, 16, 17, 4, 1, 0), dtype, true, true);  // backward_weight
    check_passes(kTile, square_case(1, 3, 16, 17, 5, 1, 0), dtype, true, true);
    check_passes(kNaive, square_case(1, 3, 16, 17, 5, 1, 0), dtype, true, true);
  }
}

TEST_CASE("convolution on the GPU by large tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  CHECK(k::plan_product(33 * 61, 35, 7).tile == 64);
  const ConvPasses forward{.backward_input = false, .backward_weight = false};
  for (const DType dtype : kGpuDTypes) {
    check_passes(kTile, square_case(1, 4, 33, 61, 40, 1, 0), dtype, true, true, forward);
    check_passes(kTile, square_case(1, 3, 33, 61, 35, 1, 0), dtype, true, true, forward);
  }
}

TEST_CASE("gradients of images on the GPU by large tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvPasses backward_input{.forward = false, .backward_weight = false};
  for (const DType dtype : kGpuDTypes) {
    check_passes(kTile, square_case(1, 40, 33, 61, 4, 1, 0), dtype, true, true, backward_input);
    check_passes(kTile, square_case(1, 35, 33, 61, 3, 1, 0), dtype, true, true, backward_input);
  }
}

TEST_CASE("gradients of weights on the GPU by large tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  CHECK(k::plan_product(35, 9 * 227, 6).tile == 64);
  const ConvPasses backward_weight{.forward = false, .backward_input = false};
  for (const DType dtype : kGpuDTypes) {
    check_passes(kTile, square_case(1, 228, 3, 2, 36, 3, 1), dtype, true, true, backward_weight);
    check_passes(kTile, square_case(1, 227, 3, 2, 35, 3, 1), dtype, true, true, backward_weight);
  }
}

TEST_CASE("convolution refuses on the GPU what it cannot do there", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(1, 4, 3, 3, 4, 3, 1);
  const Tensor x = on_gpu(drawn(one.x(), DType::f32, 1, true, kLast)), y = poisoned_on_gpu(one.y(), DType::f32, kLast);
  const Tensor w = on_gpu(drawn(one.weight(), DType::f32, 2, true, kLast)), here = w.to(Device{});
  k::Conv2dOptions onednn = one.options;
  onednn.impl = k::ConvImpl::onednn;
  CHECK_THAT(error_of([&] { k::conv2d_forward(x, w, {}, onednn, Out(y)); }), ContainsText("oneDNN runs on the CPU"));
  CHECK_THAT(error_of([&] { k::conv2d_forward(x, here, {}, one.options, Out(y)); }), ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::conv2d_backward_input(y, here, one.options, Out(x)); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::conv2d_backward_weight(x, y, one.options, Out(here)); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::conv2d_backward_bias(y, Out(Tensor::empty({4}))); }), ContainsText("move one of them"));
  const Tensor mask = Tensor::empty(k::conv_mask_shape(one.y()), {.dtype = DType::u8});
  CHECK_THAT(error_of([&] { k::conv_bias_relu_forward(x, w, {}, one.options, Out(y), Out(mask)); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] {
               k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = y}, {.x = Out(x)});
             }),
             ContainsText("move one of them"));
  const TensorOptions f64{.dtype = DType::f64, .layout = kLast, .device = kGpu};
  for (const k::ConvImpl impl : {k::ConvImpl::automatic, k::ConvImpl::reference}) {
    k::Conv2dOptions options = one.options;
    options.impl = impl;
    const Tensor wide_x = Tensor::zeros(one.x(), f64), wide_w = Tensor::zeros(one.weight(), f64);
    const Tensor wide_y = Tensor::zeros(one.y(), f64);
    CHECK_THAT(error_of([&] { k::conv2d_forward(wide_x, wide_w, {}, options, Out(wide_y)); }),
               ContainsText("f32, f16 and bf16"));
    CHECK_THAT(error_of([&] { k::conv2d_backward_input(wide_y, wide_w, options, Out(wide_x)); }),
               ContainsText("f32, f16 and bf16"));
    CHECK_THAT(error_of([&] { k::conv2d_backward_weight(wide_x, wide_y, options, Out(wide_w)); }),
               ContainsText("f32, f16 and bf16"));
  }
}

TEST_CASE("an empty batch on the GPU gives empty images and zero weight gradients", "[cuda][conv]") {
  if (!has_gpu()) return;
  const ConvCase one = square_case(0, 4, 3, 3, 4, 3, 1);
  const Tensor x = poisoned_on_gpu(one.x(), DType::f32, kLast), y = poisoned_on_gpu(one.y(), DType::f32, kLast);
  const Tensor w = poisoned_on_gpu(one.weight(), DType::f32, kLast), mask = poisoned_on_gpu({0}, DType::u8);
  k::conv_bias_relu_forward(x, Tensor::zeros(one.weight(), w.options(kLast)), {}, one.options, Out(y), Out(mask));
  const Tensor grad_bias = poisoned_on_gpu({4}, DType::f32);
  k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = y},
                             {.x = Out(x.clone()), .w = Out(w), .bias = Out(grad_bias)});
  CHECK(difference(w, Tensor::zeros(one.weight(), {.dtype = DType::f64})) == "");
  CHECK(difference(grad_bias, Tensor::zeros({4}, {.dtype = DType::f64})) == "");
}

TEST_CASE("convolution entry points on the GPU choose a family and fuse", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const auto impl : {k::ConvImpl::automatic, k::ConvImpl::reference, k::ConvImpl::fused})
    for (ConvCase one : {square_case(1, 4, 4, 4, 8, 3, 1), square_case(1, 4, 4, 4, 8, 3, 1, 1, 1, 2)}) {
      one.options.impl = impl;
      INFO(k::name_of(impl) << ": " << one.text());
      const ConvInputs in(one, DType::f32, false);
      const Tensor x = on_gpu(in.x), w = on_gpu(in.w), bias = on_gpu(in.bias), grad_y = on_gpu(in.grad_y);
      const auto like = [](const Tensor& model) { return poisoned_on_gpu(model.shape(), DType::f32, kLast); };
      const Tensor y = like(grad_y), plain = like(grad_y), mask = poisoned_on_gpu(in.mask.shape(), DType::u8);
      k::conv2d_forward(x, w, bias, one.options, Out(plain));
      k::conv_bias_relu_forward(x, w, bias, one.options, Out(y), Out(mask));
      const Tensor relu = mapped(plain, DType::f32, kLast, [](float value) { return std::max(value, 0.0f); });
      CHECK(same_bits_on_gpu(y, relu));
      CHECK(mask_matches(y, mask));

      const Tensor open = empty_like(in.grad_y);
      k::reference::apply_mask(in.grad_y, mask.to(Device{}), Out(open));
      const Tensor gradient = on_gpu(open);
      const Tensor grad_x = like(x), grad_w = like(w), grad_bias = like(bias);
      const Tensor grad_x2 = like(x), grad_w2 = like(w), grad_bias2 = like(bias);
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y},
                                 {.x = Out(grad_x), .w = Out(grad_w), .bias = Out(grad_bias)});
      k::conv2d_backward_input(gradient, w, one.options, Out(grad_x2));
      k::conv2d_backward_weight(x, gradient, one.options, Out(grad_w2));
      k::conv2d_backward_bias(gradient, Out(grad_bias2));
      CHECK(same_bits_on_gpu(grad_x, grad_x2));
      CHECK(same_bits_on_gpu(grad_w, grad_w2));
      CHECK(same_bits_on_gpu(grad_bias, grad_bias2));
      const Tensor again = like(w);
      k::conv_bias_relu_backward(one.options, {.x = x, .w = w, .mask = mask, .grad_y = grad_y}, {.w = Out(again)});
      CHECK(same_bits_on_gpu(grad_w, again));
    }
}

}  // namespace tandem::test
