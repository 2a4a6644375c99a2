// Convolution entry points: checks, and the choice of implementation.
#include "kernels/conv/conv.h"
#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/cuda_choice.h"
#include "kernels/written.h"

#include <algorithm>

namespace tandem::kernels {
namespace {

void check(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype,
           bool optional = false) {
  if (!tensor.defined()) {
    require(optional, "{}: {} is undefined", op, name);
    return;
  }
  require(tensor.shape() == shape, "{}: {} should have shape {}, got {}", op, name, to_string(shape), describe(tensor));
  require(tensor.dtype() == dtype, "{}: {} should be {}, got {}", op, name, name_of(dtype), describe(tensor));
  require(tensor.is_dense(Layout::channels_last),
          "{}: {} {} is not dense in channels_last order; pass contiguous(Layout::channels_last)", op, name,
          describe(tensor));
}

/// Checks the three tensors all passes share and gives the geometry.
ConvGeometry checked_geometry(std::string_view op, const Shape& x, const Tensor& w, const Conv2dOptions& options) {
  require(w.defined(), "{}: w is undefined", op);
  if (options.impl == ConvImpl::cudnn) {
    const std::string reason = obstacle(options.impl, w.device());
    require(reason.empty(), "{}: {}", op, reason);
  }
  const ConvGeometry g = make_geometry(x, w.shape(), options);
  check(op, "w", w, w.shape(), w.dtype());
  return g;
}

Shape input_shape(const ConvGeometry& g) { return {g.n, g.c, g.h, g.w}; }
Shape output_shape(const ConvGeometry& g) { return {g.n, g.k, g.p, g.q}; }
Shape weight_shape(const ConvGeometry& g) { return {g.k, g.group_c(), g.r, g.s}; }

bool is_empty(const ConvGeometry& g) { return g.input_numel() == 0 || g.output_numel() == 0; }

const float* floats(const Tensor& tensor) { return tensor.defined() ? tensor.data<float>() : nullptr; }
const std::uint8_t* bits(const Tensor& mask) { return mask.defined() ? mask.data<std::uint8_t>() : nullptr; }

/// One f32 implementation's three passes.
struct Passes {
  decltype(&direct::forward) forward;
  decltype(&direct::backward_input) backward_input;
  decltype(&direct::backward_weight) backward_weight;
};
constexpr Passes kDirect{direct::forward, direct::backward_input, direct::backward_weight};
constexpr Passes kWinograd{winograd::forward, winograd::backward_input, winograd::backward_weight};

/// The passes that run a geometry; null for the reference.
const Passes* select(const ConvGeometry& g, DType dtype, ConvImpl impl) {
#if TANDEM_HAS_ONEDNN
  static constexpr Passes kOneDnn{onednn::forward, onednn::backward_input, onednn::backward_weight};
  const bool library = onednn::supports(g);
#else
  constexpr bool library = false;
#endif
  const bool fast = dtype == DType::f32 && !is_empty(g);
  require(impl != ConvImpl::onednn || TANDEM_HAS_ONEDNN, "conv2d: this build has no oneDNN; use --conv-impl auto");
  if (impl == ConvImpl::onednn)
    require(dtype == DType::f32 && (library || is_empty(g)),
            "conv2d: oneDNN does not run {} with {} groups here; use --conv-impl auto", name_of(dtype), g.groups);
  if (!fast || impl == ConvImpl::reference) return nullptr;
#if TANDEM_HAS_ONEDNN
  if (impl == ConvImpl::onednn) return &kOneDnn;
#endif
  if (winograd::supports(g) && winograd::pays(g)) return &kWinograd;
#if TANDEM_HAS_ONEDNN
  // Measured: with few input channels our direct kernels, which fuse the mask, are level; otherwise the library wins.
  if (impl == ConvImpl::automatic && library && (g.groups > 1 || g.c >= 8)) return &kOneDnn;
#endif
  return &kDirect;
}

}  // namespace

void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                    const Tensor& y) {
  constexpr std::string_view kOp = "conv2d_forward";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), w, options);
  check(kOp, "x", x, x.shape(), w.dtype());
  check(kOp, "bias", bias, {g.k}, w.dtype(), true);
  check(kOp, "y", y, output_shape(g), w.dtype());
  require_one_device(kOp, y, x, w, bias);
  mark_written(y);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) return cuda::conv_forward(g, options.impl, x, w, {.bias = bias}, y);
  if (const Passes* passes = select(g, w.dtype(), options.impl))
    return passes->forward(g, floats(x), floats(w), {.bias = floats(bias)}, y.data<float>());
  reference::conv2d_forward(x, w, bias, g, false, y);
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options, const Tensor& grad_x) {
  constexpr std::string_view kOp = "conv2d_backward_input";
  require(grad_x.defined(), "{}: grad_x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, grad_x.shape(), w, options);
  check(kOp, "grad_y", grad_y, output_shape(g), w.dtype());
  check(kOp, "grad_x", grad_x, grad_x.shape(), w.dtype());
  require_one_device(kOp, grad_x, grad_y, w);
  mark_written(grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_x}) return cuda::conv_backward(g, options.impl, {}, w, {}, grad_y, grad_x, {}, {});
  if (const Passes* passes = select(g, w.dtype(), options.impl))
    return passes->backward_input(g, {floats(grad_y)}, floats(w), grad_x.data<float>());
  reference::conv2d_backward_input(grad_y, w, g, grad_x);
}

void conv2d_backward_input_below(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options,
                                 const Tensor& mask_below, const Tensor& grad_x, const Tensor& grad_bias_below) {
  constexpr std::string_view kOp = "conv2d_backward_input_below";
  require(grad_x.defined(), "{}: grad_x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, grad_x.shape(), w, options);
  check(kOp, "grad_y", grad_y, output_shape(g), w.dtype());
  check(kOp, "grad_x", grad_x, grad_x.shape(), w.dtype());
  check(kOp, "mask_below", mask_below, conv_mask_shape(grad_x.shape()), DType::u8, true);
  check(kOp, "grad_bias_below", grad_bias_below, {g.c}, w.dtype(), true);
  require_one_device(kOp, grad_x, grad_y, w, mask_below, grad_bias_below);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_x}) {
      mark_written(grad_x, grad_bias_below);
      return cuda::conv_backward_input_below(g, options.impl, grad_y, w, {mask_below, grad_bias_below}, grad_x);
    }
  conv2d_backward_input(grad_y, w, options, grad_x);
  if (mask_below.defined() && grad_x.dtype() == DType::f32) {
    apply_sign_mask({floats(grad_x), bits(mask_below)}, grad_x.numel(), grad_x.data<float>());
  } else if (mask_below.defined()) {
    reference::apply_mask(grad_x, mask_below, grad_x);
  }
  if (grad_bias_below.defined()) conv2d_backward_bias(grad_x, grad_bias_below);
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Conv2dOptions& options, const Tensor& grad_w) {
  constexpr std::string_view kOp = "conv2d_backward_weight";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), grad_w, options);
  check(kOp, "x", x, x.shape(), grad_w.dtype());
  check(kOp, "grad_y", grad_y, output_shape(g), grad_w.dtype());
  require_one_device(kOp, grad_w, x, grad_y);
  mark_written(grad_w);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_w}) return cuda::conv_backward(g, options.impl, x, {}, {}, grad_y, {}, grad_w, {});
  if (const Passes* passes = select(g, grad_w.dtype(), options.impl))
    return passes->backward_weight(g, floats(x), {floats(grad_y)}, grad_w.data<float>(), nullptr);
  reference::conv2d_backward_weight(x, grad_y, g, grad_w);
}

void conv2d_backward_bias(const Tensor& grad_y, const Tensor& grad_bias) {
  constexpr std::string_view kOp = "conv2d_backward_bias";
  require(grad_y.defined() && grad_y.rank() == 4, "{}: needs grad_y [N,K,P,Q]", kOp);
  check(kOp, "grad_y", grad_y, grad_y.shape(), grad_y.dtype());
  check(kOp, "grad_bias", grad_bias, {grad_y.size(1)}, grad_y.dtype());
  require_one_device(kOp, grad_y, grad_bias);
  mark_written(grad_bias);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_y}) return cuda::conv_backward_bias(grad_y, {}, grad_bias);
  if (grad_y.dtype() != DType::f32 || grad_y.numel() == 0) return reference::conv2d_backward_bias(grad_y, grad_bias);
  sum_rows(floats(grad_y), grad_y.numel() / grad_y.size(1), grad_y.size(1), grad_bias.data<float>());
}

void conv_bias_relu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                            const Tensor& y, const Tensor& mask) {
  constexpr std::string_view kOp = "conv_bias_relu_forward";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), w, options);
  check(kOp, "x", x, x.shape(), w.dtype());
  check(kOp, "bias", bias, {g.k}, w.dtype(), true);
  check(kOp, "y", y, output_shape(g), w.dtype());
  check(kOp, "mask", mask, conv_mask_shape(output_shape(g)), DType::u8, true);
  require_one_device(kOp, y, x, w, bias, mask);
  mark_written(y, mask);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y})
      return cuda::conv_forward(g, options.impl, x, w, {.bias = bias, .relu = true, .mask = mask}, y);
  if (const Passes* passes = select(g, w.dtype(), options.impl)) {
    std::uint8_t* out_bits = mask.defined() ? mask.data<std::uint8_t>() : nullptr;
    return passes->forward(g, floats(x), floats(w), {.bias = floats(bias), .relu = true, .mask = out_bits},
                           y.data<float>());
  }
  reference::conv2d_forward(x, w, bias, g, true, y);
  if (mask.defined()) reference::sign_mask(y, mask);
}

void conv_bias_relu_backward(const Tensor& x, const Tensor& w, const Tensor& mask, const Conv2dOptions& options,
                             const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w,
                             const Tensor& grad_bias) {
  constexpr std::string_view kOp = "conv_bias_relu_backward";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), w, options);
  check(kOp, "x", x, x.shape(), w.dtype());
  check(kOp, "mask", mask, conv_mask_shape(output_shape(g)), DType::u8);
  check(kOp, "grad_y", grad_y, output_shape(g), w.dtype());
  check(kOp, "grad_x", grad_x, input_shape(g), w.dtype(), true);
  check(kOp, "grad_w", grad_w, weight_shape(g), w.dtype(), true);
  check(kOp, "grad_bias", grad_bias, {g.k}, w.dtype(), true);

  require_one_device(kOp, grad_y, x, w, mask, grad_x, grad_w, grad_bias);
  mark_written(grad_x, grad_w, grad_bias);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_y})
      return cuda::conv_backward(g, options.impl, x, w, mask, grad_y, grad_x, grad_w, grad_bias);
  if (const Passes* passes = select(g, w.dtype(), options.impl)) {
    const MaskedGradient gradient{floats(grad_y), bits(mask)};
    float* bias_sums = grad_bias.defined() ? grad_bias.data<float>() : nullptr;
    if (grad_w.defined()) {
      passes->backward_weight(g, floats(x), gradient, grad_w.data<float>(), bias_sums);
    } else if (bias_sums != nullptr) {
      const DenseGradient dense(gradient, g, false);
      sum_rows(dense.gradient.data, g.n * g.p * g.q, g.k, bias_sums);
    }
    if (grad_x.defined()) passes->backward_input(g, gradient, floats(w), grad_x.data<float>());
    return;
  }
  const Tensor masked = empty_like(grad_y);
  reference::apply_mask(grad_y, mask, masked);
  if (grad_x.defined()) reference::conv2d_backward_input(masked, w, g, grad_x);
  if (grad_w.defined()) reference::conv2d_backward_weight(x, masked, g, grad_w);
  if (grad_bias.defined()) reference::conv2d_backward_bias(masked, grad_bias);
}

}  // namespace tandem::kernels
