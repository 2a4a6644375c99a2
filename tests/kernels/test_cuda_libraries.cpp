// cuBLAS and cuDNN on a GPU against the reference in f64, exact on whole numbers. Skipped where they are not.
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/product_support.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
constexpr Layout kLast = Layout::channels_last;

/// True if `impl` runs on the GPU; else says that the test case is skipped.
template <typename Impl>
bool has_library(Impl impl) {
  if (!has_gpu()) return false;
  return runs_unless(k::obstacle(impl, kGpu));
}

struct Size {
  std::int64_t m, n, k;
};

Tensor random_mask(const Shape& y) {
  const Tensor mask = Tensor::empty(k::conv_mask_shape(y), {.dtype = DType::u8});
  std::mt19937 generator(9);
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator());
  return mask;
}

/// All passes of one geometry; those that cuDNN has no code for must be refused with words.
int check_convolution(const ConvCase& one, DType dtype) {
  INFO(name_of(dtype) << " " << one.text());
  const k::ConvGeometry g = one.geometry();
  const Tensor x = drawn(one.x(), dtype, 1, true, kLast), w = drawn(one.weight(), dtype, 2, true, kLast);
  const Tensor bias = drawn({one.k}, dtype, 3, true), grad_y = drawn(one.y(), dtype, 4, true, kLast);
  const Tensor mask = random_mask(one.y());
  const Tensor gx = on_gpu(x), gw = on_gpu(w), gb = on_gpu(bias), gg = on_gpu(grad_y), gm = on_gpu(mask);
  const Tensor wide_x = in_f64(x, kLast), wide_w = in_f64(w, kLast), wide_b = in_f64(bias),
               wide_g = in_f64(grad_y, kLast);
  const Tensor open = empty_like(wide_g);
  k::reference::apply_mask(wide_g, mask, Out(open));
  int done = 0;
  const auto attempt = [&](auto&& call, const Tensor& result, auto&& expect) {
    const std::string refusal = error_of(call);
    if (refusal != "no error") {
      CHECK_THAT(refusal, ContainsText("cuDNN has no deterministic code for"));
      return;
    }
    ++done;
    const Tensor expected = in_f64(result, kLast);
    expect(expected);
    CHECK(difference(result, expected) == "");
  };
  const auto empty = [&](const Shape& shape) { return poisoned_on_gpu(shape, dtype, kLast); };
  const Tensor y = empty(one.y()), relu_y = empty(one.y()), grad_x = empty(one.x()), grad_w = empty(one.weight());
  const Tensor masked_x = empty(one.x()), masked_w = empty(one.weight()), bits = on_gpu(mask);
  for (const Tensor& add : {Tensor(), bias})
    attempt([&] { k::conv2d_forward(gx, gw, on_gpu(add), one.options, Out(y)); }, y,
            [&](const Tensor& expected) {
              k::reference::conv2d_forward(wide_x, wide_w, in_f64(add), g, false, Out(expected));
            });
  attempt([&] { k::conv_bias_relu_forward(gx, gw, gb, one.options, Out(relu_y), Out(bits)); }, relu_y,
          [&](const Tensor& expected) {
            k::reference::conv2d_forward(wide_x, wide_w, wide_b, g, true, Out(expected));
            const Tensor signs = Tensor::empty(mask.shape(), {.dtype = DType::u8});
            k::reference::sign_mask(expected, Out(signs));
            CHECK(bits.to(Device{}).to_vector<int>() == signs.to_vector<int>());
          });
  attempt([&] { k::conv2d_backward_input(gg, gw, one.options, Out(grad_x)); }, grad_x,
          [&](const Tensor& expected) { k::reference::conv2d_backward_input(wide_g, wide_w, g, Out(expected)); });
  attempt([&] { k::conv2d_backward_weight(gx, gg, one.options, Out(grad_w)); }, grad_w,
          [&](const Tensor& expected) { k::reference::conv2d_backward_weight(wide_x, wide_g, g, Out(expected)); });
  attempt(
      [&] {
        k::conv_bias_relu_backward(one.options, {.x = gx, .w = gw, .mask = gm, .grad_y = gg}, {.x = Out(masked_x)});
      },
      masked_x, [&](const Tensor& expected) { k::reference::conv2d_backward_input(open, wide_w, g, Out(expected)); });
  attempt(
      [&] {
        k::conv_bias_relu_backward(one.options, {.x = gx, .w = gw, .mask = gm, .grad_y = gg}, {.w = Out(masked_w)});
      },
      masked_w, [&](const Tensor& expected) { k::reference::conv2d_backward_weight(wide_x, open, g, Out(expected)); });
  return done;
}

}  // namespace

TEST_CASE("cuBLAS is exact on whole numbers", "[cuda][gemm][library]") {
  if (!has_library(k::GemmImpl::cublas)) return;
  for (const DType dtype : kGpuDTypes)
    for (const Size size :
         {Size{1, 1, 1}, Size{0, 3, 2}, Size{3, 2, 0}, Size{7, 31, 5}, Size{128, 96, 64}, Size{129, 255, 67}})
      for (int flags = 0; flags < 8; ++flags) {
        const k::GemmOptions options{(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, k::GemmImpl::cublas};
        INFO(name_of(dtype) << " " << size.m << "x" << size.n << "x" << size.k << " options " << flags);
        const Tensor a = drawn(options.transpose_a ? Shape{size.k, size.m} : Shape{size.m, size.k}, dtype, 1, true);
        const Tensor b = drawn(options.transpose_b ? Shape{size.n, size.k} : Shape{size.k, size.n}, dtype, 2, true);
        const Tensor start = drawn({size.m, size.n}, dtype, 3, true), expected = in_f64(start);
        const Tensor c = options.accumulate ? on_gpu(start).clone() : poisoned_on_gpu(start.shape(), dtype);
        k::gemm(on_gpu(a), on_gpu(b), options, Out(c));
        k::reference::gemm(in_f64(a), in_f64(b), options, Out(expected));
        CHECK(difference(c, expected) == "");
      }
}

TEST_CASE("cuBLAS in linear layers is exact on whole numbers", "[cuda][gemm][library]") {
  if (!has_library(k::GemmImpl::cublas)) return;
  for (const DType dtype : kGpuDTypes)
    for (const bool relu : {false, true}) {
      const Tensor x = drawn({33, 70}, dtype, 1, true), w = drawn({21, 70}, dtype, 2, true);
      const Tensor bias = drawn({21}, dtype, 3, true), grad_y = drawn({33, 21}, dtype, 4, true);
      const Tensor y = poisoned_on_gpu({33, 21}, dtype), expected = in_f64(grad_y);
      k::linear_forward(on_gpu(x), on_gpu(w), on_gpu(bias), relu, Out(y), k::GemmImpl::cublas);
      k::reference::linear_forward(in_f64(x), in_f64(w), in_f64(bias), relu, Out(expected));
      CHECK(difference(y, expected) == "");
      const Tensor output = relu ? drawn({33, 21}, dtype, 5, true) : Tensor();
      const Tensor grad_x = poisoned_on_gpu({33, 70}, dtype), grad_w = poisoned_on_gpu({21, 70}, dtype);
      const Tensor grad_bias = poisoned_on_gpu({21}, dtype);
      const Tensor expected_x = in_f64(x), expected_w = in_f64(w), expected_bias = in_f64(bias);
      k::linear_backward(on_gpu(x), on_gpu(w), on_gpu(output), on_gpu(grad_y), Out(grad_x), Out(grad_w), Out(grad_bias),
                         k::GemmImpl::cublas);
      k::reference::linear_backward(in_f64(x), in_f64(w), in_f64(output), in_f64(grad_y), Out(expected_x),
                                    Out(expected_w), Out(expected_bias));
      CHECK(difference(grad_x, expected_x) == "");
      CHECK(difference(grad_w, expected_w) == "");
      CHECK(difference(grad_bias, expected_bias) == "");
    }
}

TEST_CASE("cuBLAS gives the same bits every time, and auto chooses it for large products", "[cuda][gemm][library]") {
  if (!has_library(k::GemmImpl::cublas)) return;
  for (const DType dtype : kGpuDTypes) {
    const Tensor a = on_gpu(drawn({256, 2048}, dtype, 1, false)), b = on_gpu(drawn({2048, 64}, dtype, 2, false));
    const Tensor first = poisoned_on_gpu({256, 64}, dtype), second = poisoned_on_gpu({256, 64}, dtype);
    const Tensor chosen = poisoned_on_gpu({256, 64}, dtype);
    k::gemm(a, b, {.impl = k::GemmImpl::cublas}, Out(first));
    k::gemm(a, b, {.impl = k::GemmImpl::cublas}, Out(second));
    k::gemm(a, b, {}, Out(chosen));
    CHECK(same_bits_on_gpu(first, second));
    CHECK(same_bits_on_gpu(first, chosen));
  }
}

TEST_CASE("cuDNN is exact on whole numbers", "[cuda][conv][library]") {
  if (!has_library(k::ConvImpl::cudnn)) return;
  std::vector<ConvCase> cases{square_case(2, 8, 6, 6, 16, 3, 1),         square_case(2, 3, 5, 4, 8, 3, 1),
                              square_case(1, 33, 3, 3, 5, 1, 0),         square_case(2, 16, 7, 7, 32, 3, 1, 2),
                              square_case(1, 5, 8, 9, 3, 3, 1, 2, 2),    square_case(2, 1, 6, 6, 5, 5, 2),
                              square_case(2, 8, 4, 4, 8, 3, 1, 1, 1, 2), square_case(0, 8, 4, 4, 8, 3, 1)};
  cases.push_back({1, 5, 7, 9, 8, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}});
  for (const DType dtype : kGpuDTypes) {
    int done = 0;
    for (ConvCase one : cases) {
      one.options.impl = k::ConvImpl::cudnn;
      const int passes = check_convolution(one, dtype);
      done += passes;
      // Tensor cores take whole eights of channels; floats may not use them.
      if (dtype != DType::f32 && one.c % 8 == 0 && one.k % 8 == 0 && one.options.groups == 1) CHECK(passes == 7);
    }
    CHECK(done > 0);
  }
}

TEST_CASE("cuDNN gives the same bits every time", "[cuda][conv][library]") {
  if (!has_library(k::ConvImpl::cudnn)) return;
  for (const DType dtype : kGpuDTypes) {
    const ConvCase one = square_case(16, 32, 16, 16, 64, 3, 1);
    k::Conv2dOptions options = one.options;
    options.impl = k::ConvImpl::cudnn;
    const Tensor x = on_gpu(drawn(one.x(), dtype, 1, false, kLast)), g = on_gpu(drawn(one.y(), dtype, 2, false, kLast));
    const Tensor first = poisoned_on_gpu(one.weight(), dtype, kLast),
                 again = poisoned_on_gpu(one.weight(), dtype, kLast);
    k::conv2d_backward_weight(x, g, options, Out(first));
    for (int i = 0; i < 5; ++i) {
      k::conv2d_backward_weight(x, g, options, Out(again));
      CHECK(same_bits_on_gpu(first, again));
    }
  }
}

}  // namespace tandem::test
