// gemm and linear on the GPU against the reference in f64: exact on whole numbers, bounded on random ones.
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tandem/kernels/gemm/product_plan.h"
#include "tests/kernels/product_support.h"
#include "tests/support/catch.h"

#include <cmath>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

struct Size {
  std::int64_t m, n, k;
};

/// Sizes on both sides of fours, tiles and steps.
std::vector<Size> small_sizes() {
  return {{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {15, 33, 17}, {7, 31, 5}, {36, 40, 20}};
}

void check_gemm(Size size, const k::GemmOptions& options, DType dtype, bool whole) {
  INFO(name_of(dtype) << " " << size.m << "x" << size.n << "x" << size.k << " ta " << options.transpose_a << " tb "
                      << options.transpose_b << " add " << options.accumulate << (whole ? " whole" : " random"));
  const Tensor a = drawn(options.transpose_a ? Shape{size.k, size.m} : Shape{size.m, size.k}, dtype, 1, whole);
  const Tensor b = drawn(options.transpose_b ? Shape{size.n, size.k} : Shape{size.k, size.n}, dtype, 2, whole);
  const Tensor start = drawn({size.m, size.n}, dtype, 3, whole);
  const Tensor c = options.accumulate ? on_gpu(start).clone() : poisoned_on_gpu(start.shape(), dtype);
  const Tensor expected = in_f64(start), scale = absolute_f64(start);
  k::gemm(on_gpu(a), on_gpu(b), options, Out(c));
  k::reference::gemm(in_f64(a), in_f64(b), options, Out(expected));
  if (whole) {
    CHECK(difference(c, expected) == "");
  } else {
    k::reference::gemm(absolute_f64(a), absolute_f64(b), options, Out(scale));
    CHECK(difference(c, expected, scale, static_cast<double>(size.k) + 2.0) == "");
  }
}

void check_linear(Size size, bool relu, DType dtype, bool whole) {
  INFO(name_of(dtype) << " " << size.m << " rows, " << size.n << " outputs, " << size.k << " inputs, relu " << relu
                      << (whole ? " whole" : " random"));
  const Tensor x = drawn({size.m, size.k}, dtype, 1, whole), w = drawn({size.n, size.k}, dtype, 2, whole);
  const Tensor bias = drawn({size.n}, dtype, 3, whole), grad_y = drawn({size.m, size.n}, dtype, 4, whole);
  const Tensor gx = on_gpu(x), gw = on_gpu(w);
  for (const Tensor& add : {bias, Tensor()}) {
    const Tensor y = poisoned_on_gpu({size.m, size.n}, dtype);
    const Tensor expected = in_f64(grad_y), scale = in_f64(grad_y);
    k::linear_forward(gx, gw, on_gpu(add), relu, Out(y));
    k::reference::linear_forward(in_f64(x), in_f64(w), in_f64(add), relu, Out(expected));
    k::reference::linear_forward(absolute_f64(x), absolute_f64(w), absolute_f64(add), false, Out(scale));
    CHECK(difference(y, expected, whole ? Tensor() : scale, static_cast<double>(size.k) + 2.0) == "");
  }

  // Any signs do for the output of a forward pass.
  const Tensor output = relu ? drawn({size.m, size.n}, dtype, 5, whole) : Tensor();
  const Tensor grad_x = poisoned_on_gpu(x.shape(), dtype), grad_w = poisoned_on_gpu(w.shape(), dtype);
  const Tensor grad_bias = poisoned_on_gpu({size.n}, dtype);
  const Tensor grad_x2 = in_f64(x), grad_w2 = in_f64(w), grad_bias2 = in_f64(bias);
  const Tensor scale_x = in_f64(x), scale_w = in_f64(w), scale_bias = in_f64(bias);
  k::linear_backward(gx, gw, on_gpu(output), on_gpu(grad_y), Out(grad_x), Out(grad_w), Out(grad_bias));
  k::reference::linear_backward(in_f64(x), in_f64(w), in_f64(output), in_f64(grad_y), Out(grad_x2), Out(grad_w2),
                                Out(grad_bias2));
  k::reference::linear_backward(absolute_f64(x), absolute_f64(w), in_f64(output), absolute_f64(grad_y), Out(scale_x),
                                Out(scale_w), Out(scale_bias));
  const auto scale = [&](const Tensor& sums) { return whole ? Tensor() : sums; };
  CHECK(difference(grad_x, grad_x2, scale(scale_x), static_cast<double>(size.n) + 2.0) == "");
  CHECK(difference(grad_w, grad_w2, scale(scale_w), static_cast<double>(size.m) + 2.0) == "");
  CHECK(difference(grad_bias, grad_bias2, scale(scale_bias), static_cast<double>(size.m) + 2.0) == "");
}

}  // namespace

TEST_CASE("gemm on the GPU is exact on whole numbers", "[cuda][gemm]") {
  if (!has_gpu()) return;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      for (const bool accumulate : {false, true})
        for (const Size size : small_sizes())
          check_gemm(size, {transpose_a, transpose_b, accumulate}, DType::f32, true);
      for (const DType dtype : {DType::f16, DType::bf16})
        for (const Size size : {Size{15, 33, 17}, Size{36, 40, 20}})
          check_gemm(size, {transpose_a, transpose_b, true}, dtype, true);
    }
  // In parts.
  for (const DType dtype : kGpuDTypes) {
    check_gemm({9, 10, 261}, {.transpose_b = true}, dtype, true);
    check_gemm({12, 8, 260}, {.transpose_a = true, .accumulate = true}, dtype, true);
  }
}

TEST_CASE("gemm on the GPU rounds no more than its sums explain", "[cuda][gemm]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes) {
    check_gemm({15, 33, 17}, {.accumulate = true}, dtype, false);
    check_gemm({12, 8, 260}, {.transpose_b = true}, dtype, false);
  }
}

TEST_CASE("large gemm on the GPU is exact on whole numbers", "[cuda][gemm]") {
  if (!has_gpu()) return;
  CHECK(k::plan_product(509, 252, 4).tile == 64);
  CHECK(k::plan_product(9, 10, 261).parts == 2);
  for (const DType dtype : kGpuDTypes) {
    check_gemm({509, 252, 4}, {.transpose_b = true}, dtype, true);
    check_gemm({511, 253, 3}, {}, dtype, true);
  }
}

TEST_CASE("gemm on the GPU takes views of any strides, and writes only its part", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const Tensor wide = drawn({40, 80}, DType::f32, 1, true), other = drawn({80, 90}, DType::f32, 2, true);
  for (const std::int64_t first : {0, 1, 4})
    for (const std::int64_t step : {1, 2}) {
      INFO("first " << first << ", step " << step);
      const auto left = [&](const Tensor& x) { return x.narrow(0, first, 17).narrow(1, first, 20, step); };
      const auto right = [&](const Tensor& x) { return x.narrow(0, first, 20, step).narrow(1, first, 36, step); };
      const Tensor large = Tensor::full({25, 50}, 7.0).to(kGpu), part = large.narrow(0, 2, 17).narrow(1, first, 36);
      const Tensor expected = Tensor::full({25, 50}, 7.0);
      k::gemm(left(on_gpu(wide)), right(on_gpu(other)), {}, Out(part));
      k::reference::gemm(left(wide), right(other), {}, Out(expected.narrow(0, 2, 17).narrow(1, first, 36)));
      CHECK(difference(large, expected) == "");
    }
}

TEST_CASE("linear on the GPU matches the reference", "[cuda][gemm]") {
  if (!has_gpu()) return;
  for (const bool relu : {false, true}) {
    for (const Size size : small_sizes()) check_linear(size, relu, DType::f32, true);
    for (const DType dtype : kGpuDTypes) {
      check_linear({15, 33, 17}, relu, dtype, false);
      check_linear({8, 20, 12}, relu, dtype, true);
      check_linear({5, 3, 260}, relu, dtype, true);
    }
  }
}

TEST_CASE("gradients of biases on the GPU come with those of weights", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const Size parts{261, 10, 9}, parts_in_fours{260, 12, 8}, one_output{256, 1, 8}, tiles{4, 509, 252},
      tiles_in_fours{4, 508, 252};
  CHECK(k::plan_product(parts.n, parts.k, parts.m).parts == 2);
  CHECK(k::plan_product(one_output.n, one_output.k, one_output.m).parts == 2);
  CHECK(k::plan_product(tiles.n, tiles.k, tiles.m).tile == 64);
  CHECK(k::plan_product(tiles_in_fours.n, tiles_in_fours.k, tiles_in_fours.m).tile == 64);
  for (const DType dtype : kGpuDTypes) {
    for (const Size size : {Size{64, 1, 1}, Size{65, 33, 1}, parts, parts_in_fours, one_output, tiles, tiles_in_fours})
      check_linear(size, true, dtype, true);
    check_linear(parts, false, dtype, false);
  }
}

TEST_CASE("gradients of biases alone on the GPU add chunks of rows", "[cuda][gemm]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes)
    for (const Size size : {Size{64, 1, 0}, Size{65, 33, 0}, Size{200, 3, 0}}) check_linear(size, true, dtype, true);
}

TEST_CASE("linear on the GPU computes the gradients asked for, of unaligned views", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const auto shifted = [](const Tensor& x) {
    const Tensor large = Tensor::zeros({x.numel() + 1}).to(kGpu);
    const Tensor view = large.narrow(0, 1, x.numel()).view(x.shape());
    view.copy_from(x);
    return view;
  };
  const Tensor x = drawn({8, 12}, DType::f32, 1, true), w = drawn({16, 12}, DType::f32, 2, true);
  const Tensor output = drawn({8, 16}, DType::f32, 3, true), grad_y = drawn({8, 16}, DType::f32, 4, true);
  const Tensor expected_x = in_f64(x), expected_w = in_f64(w),
               expected_bias = Tensor::zeros({16}, {.dtype = DType::f64});
  k::reference::linear_backward(in_f64(x), in_f64(w), in_f64(output), in_f64(grad_y), Out(expected_x), Out(expected_w),
                                Out(expected_bias));
  for (int asked = 0; asked < 8; ++asked) {
    const Tensor grad_x = (asked & 1) != 0 ? poisoned_on_gpu(x.shape(), DType::f32) : Tensor();
    const Tensor grad_w = (asked & 2) != 0 ? poisoned_on_gpu(w.shape(), DType::f32) : Tensor();
    const Tensor grad_bias = (asked & 4) != 0 ? poisoned_on_gpu({16}, DType::f32) : Tensor();
    k::linear_backward(shifted(x), shifted(w), shifted(output), shifted(grad_y), Out(grad_x), Out(grad_w),
                       Out(grad_bias));
    if (grad_x.defined()) CHECK(difference(grad_x, expected_x) == "");
    if (grad_w.defined()) CHECK(difference(grad_w, expected_w) == "");
    if (grad_bias.defined()) CHECK(difference(grad_bias, expected_bias) == "");
  }
}

TEST_CASE("gradients of linear on the GPU pass where its ReLU gave NaN, as on the CPU", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const Tensor x = Tensor::full({2, 1}, 1.0), w = Tensor::full({2, 1}, 1.0), grad_y = Tensor::full({2, 2}, 1.0);
  const Tensor y = Tensor::from<float>({1.0f, std::nanf(""), 0.0f, 2.0f}, {2, 2});
  const Tensor grad_x = poisoned_on_gpu({2, 1}, DType::f32), grad_w = poisoned_on_gpu({2, 1}, DType::f32);
  const Tensor grad_bias = poisoned_on_gpu({2}, DType::f32);
  k::linear_backward(on_gpu(x), on_gpu(w), on_gpu(y), on_gpu(grad_y), Out(grad_x), Out(grad_w), Out(grad_bias));
  CHECK(grad_x.to_vector<float>() == std::vector<float>{2.0f, 1.0f});
  CHECK(grad_w.to_vector<float>() == std::vector<float>{1.0f, 2.0f});
  CHECK(grad_bias.to_vector<float>() == std::vector<float>{1.0f, 2.0f});
  k::linear_backward(on_gpu(x), on_gpu(w), on_gpu(y), on_gpu(grad_y), {}, {}, Out(grad_bias));
  CHECK(grad_bias.to_vector<float>() == std::vector<float>{1.0f, 2.0f});
}

TEST_CASE("products on the GPU have the same bits every time", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const Tensor a = on_gpu(drawn({20, 700}, DType::f32, 1, false)), b = on_gpu(drawn({700, 30}, DType::f32, 2, false));
  const Tensor first = poisoned_on_gpu({20, 30}, DType::f32), second = poisoned_on_gpu({20, 30}, DType::f32);
  k::gemm(a, b, {}, Out(first));
  k::gemm(a, b, {}, Out(second));
  CHECK(same_bits_on_gpu(first, second));
}

TEST_CASE("products on the GPU refuse f64 and tensors on two devices", "[cuda][gemm]") {
  if (!has_gpu()) return;
  const TensorOptions f64{.dtype = DType::f64, .device = kGpu}, f32{.device = kGpu};
  const Tensor a = Tensor::zeros({2, 2}, f32), wide = Tensor::zeros({2, 2}, f64), here = Tensor::zeros({2, 2});
  CHECK_THAT(error_of([&] { k::gemm(wide, wide, {}, Out(Tensor::zeros({2, 2}, f64))); }),
             ContainsText("f32, f16 and bf16"));
  CHECK_THAT(error_of([&] { k::linear_forward(wide, wide, {}, false, Out(Tensor::zeros({2, 2}, f64))); }),
             ContainsText("f32, f16 and bf16"));
  CHECK_THAT(error_of([&] { k::gemm(a, here, {}, Out(Tensor::zeros({2, 2}, f32))); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::gemm(a, a, {}, Out(here.clone())); }), ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::linear_forward(a, here, {}, false, Out(Tensor::zeros({2, 2}, f32))); }),
             ContainsText("move one of them"));
  CHECK_THAT(error_of([&] { k::linear_backward(a, a, {}, here, Out(a.clone()), {}, {}); }),
             ContainsText("move one of them"));
}

}  // namespace tandem::test
