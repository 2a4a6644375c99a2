// What the tests of convolutions on the GPU share: inputs, the reference's results in f64, and the comparison.
#pragma once

#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/families.h"
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tests/kernels/conv_support.h"
#include "tests/kernels/product_support.h"

#include <functional>

namespace tandem::test {

inline constexpr Layout kLast = Layout::channels_last;

/// One implementation's passes.
struct ConvFamily {
  std::string name;
  std::function<kernels::cuda::ForwardPass> forward;
  std::function<kernels::cuda::BackwardInputPass> backward_input;
  std::function<kernels::cuda::BackwardWeightPass> backward_weight;
};

/// Those of a family of the product; a pass that it does not have is that of the next slower one.
inline ConvFamily passes_of(const kernels::cuda::ConvFamily& family) {
  const kernels::cuda::ConvFamily* for_input = &family;
  while (for_input->backward_input == nullptr) --for_input;
  return {std::string(family.name), family.forward, for_input->backward_input, family.backward_weight};
}
inline ConvFamily passes_of(std::string_view name) { return passes_of(kernels::cuda::conv_family(name)); }

/// A plan on the GPU whose runners are chosen as the passes run.
inline kernels::ConvPlan plan_of(const kernels::ConvGeometry& g, kernels::ConvImpl impl, DType dtype) {
  return {.geometry = g,
          .impl = impl,
          .dtype = dtype,
          .device = kGpu,
          .forward = {},
          .backward_input = {},
          .backward_weight = {}};
}

/// The passes as the entry points run them: by whom `impl` asks for.
inline ConvFamily chosen_by(kernels::ConvImpl impl) {
  namespace cuda = kernels::cuda;
  return {"chosen by " + std::string(kernels::name_of(impl)),
          [=](const auto& g, const auto& x, const auto& w, const auto& epilogue, const auto& y) {
            cuda::conv_forward(plan_of(g, impl, y.dtype()), x, w, epilogue, y);
          },
          [=](const auto& g, const auto& grad_y, const auto& mask, const auto& w, const auto& grad_x) {
            cuda::conv_backward(plan_of(g, impl, grad_x.dtype()), {.w = w, .mask = mask, .grad_y = grad_y},
                                {.x = grad_x}, {});
          },
          [=](const auto& g, const auto& x, const auto& grad_y, const auto& mask, const auto& grad_w) {
            cuda::conv_backward(plan_of(g, impl, grad_w.dtype()), {.x = x, .mask = mask, .grad_y = grad_y},
                                {.w = grad_w}, {});
          }};
}

inline Tensor random_mask(const Shape& y, unsigned seed) {
  std::mt19937 generator(seed);
  const Tensor mask = Tensor::empty(kernels::conv_mask_shape(y), {.dtype = DType::u8});
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator());
  return mask;
}

inline Tensor empty_f64(const Shape& shape) { return Tensor::empty(shape, {.dtype = DType::f64, .layout = kLast}); }

/// Inputs on the CPU, in the storage dtype.
struct ConvInputs {
  Tensor x, w, bias, grad_y, mask;

  ConvInputs(const ConvCase& one, DType dtype, bool whole)
      : x(drawn(one.x(), dtype, 1, whole, kLast)),
        w(drawn(one.weight(), dtype, 2, whole, kLast)),
        bias(drawn({one.k}, dtype, 3, whole)),
        grad_y(drawn(one.y(), dtype, 4, whole, kLast)),
        mask(random_mask(one.y(), 5)) {}
};

/// The four results in f64, of the values themselves or of their magnitudes.
struct ConvExpected {
  Tensor y, grad_x, grad_w, grad_bias;

  ConvExpected(const ConvCase& one, const ConvInputs& in, bool magnitudes, bool use_bias, bool relu, bool use_mask)
      : y(empty_f64(one.y())),
        grad_x(empty_f64(one.x())),
        grad_w(empty_f64(one.weight())),
        grad_bias(empty_f64({one.k})) {
    const auto wide = [&](const Tensor& x) { return magnitudes ? absolute_f64(x, kLast) : in_f64(x, kLast); };
    const kernels::ConvGeometry g = one.geometry();
    const Tensor gradient = wide(in.grad_y), x = wide(in.x), w = wide(in.w);
    const Tensor open = use_mask ? empty_like(gradient) : gradient;
    if (use_mask) kernels::reference::apply_mask(gradient, in.mask, Out(open));
    kernels::reference::conv2d_forward(x, w, use_bias ? wide(in.bias) : Tensor(), g, relu && !magnitudes, Out(y));
    kernels::reference::conv2d_backward_input(open, w, g, Out(grad_x));
    kernels::reference::conv2d_backward_weight(x, open, g, Out(grad_w));
    kernels::reference::conv2d_backward_bias(open, Out(grad_bias));
  }
};

/// True if each bit says whether the element of `y` is positive, and those past the end are 0.
inline bool mask_matches(const Tensor& y, const Tensor& mask) {
  const Tensor here = mask.to(Device{}), expected = Tensor::empty(mask.shape(), {.dtype = DType::u8});
  kernels::reference::sign_mask(y.to(Device{}), Out(expected));
  return here.to_vector<int>() == expected.to_vector<int>();
}

struct ConvPasses {
  bool forward = true, backward_input = true, backward_weight = true;
};

/// One family's passes, with or without bias, ReLU and masks. `product_error` is that of difference().
inline void check_passes(const ConvFamily& family, const ConvCase& one, DType dtype, bool whole, bool fused,
                         ConvPasses which = {}, double product_error = 0) {
  INFO(family.name << " " << name_of(dtype) << (whole ? " whole " : " random ") << (fused ? "fused " : "plain ")
                   << one.text());
  const kernels::ConvGeometry g = one.geometry();
  const ConvInputs in(one, dtype, whole);
  const ConvExpected expected(one, in, false, fused, fused, fused);
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), grad_y = on_gpu(in.grad_y);
  const Tensor used_mask = fused ? on_gpu(in.mask) : Tensor();
  const Tensor y = poisoned_on_gpu(one.y(), dtype, kLast), grad_x = poisoned_on_gpu(one.x(), dtype, kLast);
  const Tensor grad_w = poisoned_on_gpu(one.weight(), dtype, kLast), grad_bias = poisoned_on_gpu({one.k}, dtype);
  const Tensor mask = fused ? poisoned_on_gpu(kernels::conv_mask_shape(one.y()), DType::u8) : Tensor();
  if (which.forward)
    family.forward(g, x, w, {.bias = fused ? on_gpu(in.bias) : Tensor(), .relu = fused, .mask = Out(mask)}, Out(y));
  if (which.backward_input) family.backward_input(g, grad_y, used_mask, w, Out(grad_x));
  if (which.backward_weight) family.backward_weight(g, x, grad_y, used_mask, Out(grad_w));
  kernels::cuda::conv_backward_bias(grad_y, used_mask, Out(grad_bias));
  if (fused && which.forward) CHECK(mask_matches(y, mask));
  if (whole) {
    if (which.forward) CHECK(difference(y, expected.y) == "");
    if (which.backward_input) CHECK(difference(grad_x, expected.grad_x) == "");
    if (which.backward_weight) CHECK(difference(grad_w, expected.grad_w) == "");
    CHECK(difference(grad_bias, expected.grad_bias) == "");
    return;
  }
  const ConvExpected scale(one, in, true, fused, false, fused);
  const auto taps = static_cast<double>(g.r * g.s), pixels = static_cast<double>(g.n * g.p * g.q);
  if (which.forward)
    CHECK(difference(y, expected.y, scale.y, taps * static_cast<double>(g.group_c()) + 2.0, product_error) == "");
  if (which.backward_input)
    CHECK(difference(grad_x, expected.grad_x, scale.grad_x, taps * static_cast<double>(g.group_k()) + 2.0,
                     product_error) == "");
  if (which.backward_weight)
    CHECK(difference(grad_w, expected.grad_w, scale.grad_w, pixels + 2.0, product_error) == "");
  CHECK(difference(grad_bias, expected.grad_bias, scale.grad_bias, pixels + 2.0) == "");
}

/// The gradient of whole numbers that passes a random mask of the layer below and leaves its bias gradient, each if
/// asked for. `run(grad_y, w, below, grad_x)`.
template <typename Run>
void check_layer_below(const ConvCase& one, DType dtype, bool masks, bool sums, Run&& run) {
  INFO(one.text() << " " << name_of(dtype) << (masks ? " masked" : "") << (sums ? " summed up" : ""));
  const ConvInputs in(one, dtype, true);
  const ConvExpected expected(one, in, false, false, false, false);
  // The bias gradient is the sum of what is stored, rounded.
  const Tensor rounded = mapped(expected.grad_x, dtype, kLast, [](double value) { return static_cast<float>(value); });
  const Tensor bits = random_mask(one.x(), 6), passed = empty_f64(one.x()), bias = empty_f64({one.c});
  kernels::reference::apply_mask(in_f64(rounded, kLast), bits, Out(passed));
  kernels::reference::conv2d_backward_bias(masks ? passed : in_f64(rounded, kLast), Out(bias));
  const Tensor grad_x = poisoned_on_gpu(one.x(), dtype, kLast), grad_bias = poisoned_on_gpu({one.c}, dtype);
  run(on_gpu(in.grad_y), on_gpu(in.w),
      kernels::LayerBelow{masks ? on_gpu(bits) : Tensor(), Out(sums ? grad_bias : Tensor())}, Out(grad_x));
  CHECK(difference(grad_x, masks ? passed : expected.grad_x) == "");
  if (sums) CHECK(difference(grad_bias, bias) == "");
}

/// For check_pooled: the kernels that a plan for `impl` chooses.
inline auto pooled_by(kernels::ConvImpl impl, const ConvCase& one) {
  return [impl, options = one.options](const auto& /*g*/, const Tensor& x, const Tensor& w, const Tensor& bias,
                                       const kernels::cuda::PooledOutput& to) {
    kernels::Conv2dOptions own = options;
    own.impl = impl;
    const kernels::ConvPlan plan = kernels::plan_conv(x, w, own, {.forward = kernels::PassKind::forward_pool});
    kernels::conv_bias_relu_pool_forward(plan, x, w, bias, to.y, to.positions, to.mask);
  };
}

/// Whether a plan says that a convolution and 2x2 maxima are one pass, and in how many parts it leaves moments.
inline bool fuses_pool(const Tensor& x, const Tensor& w, const kernels::Conv2dOptions& options) {
  return kernels::plan_conv(x, w, options, {.forward = kernels::PassKind::forward_pool}).fuses_pool;
}
inline std::int64_t moment_parts(const Tensor& x, const Tensor& w, const kernels::Conv2dOptions& options) {
  return kernels::plan_conv(x, w, options, {.forward = kernels::PassKind::forward_moments}).moment_parts;
}

/// Bias, ReLU and 2x2 maxima with their places and mask, against the maxima of what `forward` writes; the maxima alone
/// are the same bits. `pool(g, x, w, bias, PooledOutput)`, `forward(g, x, w, Epilogue, y)`.
template <typename Pool, typename Forward>
void check_pooled(const ConvCase& one, DType dtype, bool whole, Pool&& pool, Forward&& forward) {
  INFO(one.text() << " " << name_of(dtype) << (whole ? " whole" : " random"));
  const kernels::Pool2dOptions windows{.kernel = {2, 2}, .stride = {2, 2}};
  const ConvInputs in(one, dtype, whole);
  const kernels::ConvGeometry g = one.geometry();
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w), bias = whole ? on_gpu(in.bias) : Tensor();
  const Shape pooled = kernels::conv_pool_output_shape(one.x(), one.weight(), one.options);
  const Tensor y = poisoned_on_gpu(pooled, dtype, kLast), positions = poisoned_on_gpu(pooled, DType::u8, kLast);
  const Tensor mask = poisoned_on_gpu(kernels::conv_mask_shape(pooled), DType::u8);
  pool(g, x, w, bias, kernels::cuda::PooledOutput{Out(y), Out(positions), Out(mask)});
  const Tensor before = poisoned_on_gpu(one.y(), dtype, kLast);
  forward(g, x, w, kernels::cuda::Epilogue{.bias = bias, .relu = true}, Out(before));
  const Tensor expected = empty_f64(pooled), winners = Tensor::empty(pooled, {DType::u8, kLast, {}});
  kernels::reference::max_pool2d_forward(in_f64(before, kLast), windows, Out(expected), Out(winners));
  CHECK(difference(y, expected) == "");
  CHECK(mask_matches(y, mask));
  const auto maxima = expected.to_vector<double>();
  const auto got = positions.to(Device{}).to_vector<int>(), wanted = winners.to_vector<int>();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    wrong += got[i] != (maxima[i] > 0.0 ? wanted[i] : int{kernels::kNoPosition}) ? 1 : 0;
  CHECK(wrong == 0);
  const Tensor alone = poisoned_on_gpu(pooled, dtype, kLast);
  pool(g, x, w, bias, kernels::cuda::PooledOutput{Out(alone), {}, {}});
  CHECK(same_bits_on_gpu(alone, y));
}

}  // namespace tandem::test
