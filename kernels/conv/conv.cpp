// Convolution entry points: checks, and the choice of implementation.
#include "kernels/conv/conv.h"
#include "core/describe.h"
#include "kernels/cast/float_runs.h"
#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/implementations.h"
#include "kernels/cuda_choice.h"
#include "kernels/written.h"

namespace tandem::kernels {
namespace {

void check(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype,
           bool optional = false) {
  if (!tensor.defined()) {
    require(optional, "{}: {} is undefined", op, name);
    return;
  }
  require(tensor.shape() == shape, "{}: {} should have shape {}, got {}", op, name, shape, tensor);
  require(tensor.dtype() == dtype, "{}: {} should be {}, got {}", op, name, name_of(dtype), tensor);
  require(tensor.is_dense(Layout::channels_last),
          "{}: {} {} is not dense in channels_last order; pass contiguous(Layout::channels_last)", op, name, tensor);
}

/// Checks the three tensors all passes share and gives the geometry.
ConvGeometry checked_geometry(std::string_view op, const Shape& x, const Tensor& w, const Conv2dOptions& options) {
  require(w.defined(), "{}: w is undefined", op);
  if (options.impl != ConvImpl::automatic) {
    const std::string reason = obstacle(options.impl, w.device());
    require(reason.empty(), "{}: {}", op, reason);
  }
  const ConvGeometry g = make_geometry(x, w.shape(), options);
  check(op, "w", w, w.shape(), w.dtype());
  return g;
}

/// The geometry of operands that are only asked about.
ConvGeometry checked_inputs(std::string_view op, const Tensor& x, const Tensor& w, const Conv2dOptions& options) {
  require(x.defined(), "{}: x is undefined", op);
  const ConvGeometry g = checked_geometry(op, x.shape(), w, options);
  check(op, "x", x, x.shape(), w.dtype());
  require_one_device(op, x, w);
  return g;
}

Shape input_shape(const ConvGeometry& g) { return {g.n, g.c, g.h, g.w}; }
Shape output_shape(const ConvGeometry& g) { return {g.n, g.k, g.p, g.q}; }
Shape weight_shape(const ConvGeometry& g) { return {g.k, g.group_c(), g.r, g.s}; }

/// What a layer below wants done with grad_x, on the CPU.
void finish_for_layer_below(const Tensor& grad_x, const LayerBelow& below) {
  if (below.mask.defined() && cpu::computes_in_float(grad_x.dtype())) {
    cpu::apply_mask(grad_x, below.mask);
  } else if (below.mask.defined()) {
    reference::apply_mask(grad_x, below.mask, grad_x);
  }
  if (below.grad_bias.defined()) conv2d_backward_bias(grad_x, below.grad_bias);
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
  mark_written(kOp, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) return cuda::conv_forward(g, options.impl, x, w, {.bias = bias}, y);
  if (cpu::conv_supports(g, w.dtype(), options.impl))
    return cpu::conv_forward(g, options.impl, x, w, bias, false, {}, y);
  reference::conv2d_forward(x, w, bias, g, false, y);
}

void conv2d_forward_with_moments(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                 const Tensor& y, const Tensor& moments) {
  constexpr std::string_view kOp = "conv2d_forward_with_moments";
  const ConvGeometry g = checked_inputs(kOp, x, w, options);
  const std::int64_t parts = conv_moment_parts(x, w, options);
  require(parts > 0, "{}: there are no kernels for {} and these options; batch norm reads y instead", kOp, x);
  check(kOp, "bias", bias, {g.k}, w.dtype(), true);
  check(kOp, "y", y, output_shape(g), w.dtype());
  require(moments.defined() && moments.dtype() == DType::f64 && moments.shape() == Shape{3, parts, g.k},
          "{}: moments must be f64 [3, {}, {}], got {}", kOp, parts, g.k,
          moments.defined() ? describe(moments) : "nothing");
  require_one_device(kOp, y, x, w, bias, moments);
  mark_written(kOp, y, moments);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) cuda::conv_forward_moments(g, options.impl, x, w, bias, y, moments);
}

std::int64_t conv_moment_parts(const Tensor& x, const Tensor& w, const Conv2dOptions& options) {
  const ConvGeometry g = checked_inputs("conv_moment_parts", x, w, options);
  if constexpr (kHasCuda)
    if (x.device().type == DeviceType::cuda) return cuda::conv_moment_parts(g, options.impl, x, w);
  return 0;
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options, const Tensor& grad_x) {
  constexpr std::string_view kOp = "conv2d_backward_input";
  require(grad_x.defined(), "{}: grad_x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, grad_x.shape(), w, options);
  check(kOp, "grad_y", grad_y, output_shape(g), w.dtype());
  check(kOp, "grad_x", grad_x, grad_x.shape(), w.dtype());
  require_one_device(kOp, grad_x, grad_y, w);
  mark_written(kOp, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_x})
      return cuda::conv_backward(g, options.impl, {}, w, {}, grad_y, grad_x, {}, {}, {});
  if (cpu::conv_supports(g, w.dtype(), options.impl))
    return cpu::conv_backward(g, options.impl, {}, w, {}, grad_y, grad_x, {}, {});
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
      mark_written(kOp, grad_x, grad_bias_below);
      return cuda::conv_backward(g, options.impl, {}, w, {}, grad_y, grad_x, {}, {}, {mask_below, grad_bias_below});
    }
  conv2d_backward_input(grad_y, w, options, grad_x);
  finish_for_layer_below(grad_x, {mask_below, grad_bias_below});
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Conv2dOptions& options, const Tensor& grad_w) {
  constexpr std::string_view kOp = "conv2d_backward_weight";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), grad_w, options);
  check(kOp, "x", x, x.shape(), grad_w.dtype());
  check(kOp, "grad_y", grad_y, output_shape(g), grad_w.dtype());
  require_one_device(kOp, grad_w, x, grad_y);
  mark_written(kOp, grad_w);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_w})
      return cuda::conv_backward(g, options.impl, x, {}, {}, grad_y, {}, grad_w, {}, {});
  if (cpu::conv_supports(g, grad_w.dtype(), options.impl))
    return cpu::conv_backward(g, options.impl, x, {}, {}, grad_y, {}, grad_w, {});
  reference::conv2d_backward_weight(x, grad_y, g, grad_w);
}

void conv2d_backward_bias(const Tensor& grad_y, const Tensor& grad_bias, const Tensor& mask) {
  constexpr std::string_view kOp = "conv2d_backward_bias";
  require(grad_y.defined() && grad_y.rank() == 4, "{}: needs grad_y [N,K,P,Q]", kOp);
  check(kOp, "grad_y", grad_y, grad_y.shape(), grad_y.dtype());
  check(kOp, "grad_bias", grad_bias, {grad_y.size(1)}, grad_y.dtype());
  check(kOp, "mask", mask, conv_mask_shape(grad_y.shape()), DType::u8, true);
  require_one_device(kOp, grad_y, grad_bias, mask);
  mark_written(kOp, grad_bias);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_y}) return cuda::conv_backward_bias(grad_y, mask, grad_bias);
  if (mask.defined()) {
    const Tensor masked = empty_like(grad_y);
    reference::apply_mask(grad_y, mask, masked);
    return conv2d_backward_bias(masked, grad_bias);
  }
  if (cpu::computes_in_float(grad_y.dtype()) && grad_y.numel() > 0) return cpu::conv_backward_bias(grad_y, grad_bias);
  reference::conv2d_backward_bias(grad_y, grad_bias);
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
  mark_written(kOp, y, mask);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y})
      return cuda::conv_forward(g, options.impl, x, w, {.bias = bias, .relu = true, .mask = mask}, y);
  if (cpu::conv_supports(g, w.dtype(), options.impl))
    return cpu::conv_forward(g, options.impl, x, w, bias, true, mask, y);
  reference::conv2d_forward(x, w, bias, g, true, y);
  if (mask.defined()) reference::sign_mask(y, mask);
}

Shape conv_pool_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  const Shape y = conv2d_output_shape(x, w, options);
  return {y[0], y[1], y[2] / 2, y[3] / 2};
}

void conv_bias_relu_pool_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                 const Tensor& y, const Tensor& positions, const Tensor& mask) {
  constexpr std::string_view kOp = "conv_bias_relu_pool_forward";
  require(conv_fuses_pool(x, w, options), "{}: there are no kernels for {} and these options; pool the result instead",
          kOp, x);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), w, options);
  const Shape pooled = conv_pool_output_shape(x.shape(), w.shape(), options);
  check(kOp, "bias", bias, {g.k}, w.dtype(), true);
  check(kOp, "y", y, pooled, w.dtype());
  check(kOp, "positions", positions, pooled, DType::u8, true);
  check(kOp, "mask", mask, conv_mask_shape(pooled), DType::u8, true);
  require_one_device(kOp, y, x, w, bias, positions, mask);
  mark_written(kOp, y, positions, mask);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) cuda::conv_pool_forward(g, options.impl, x, w, bias, {y, positions, mask});
}

bool conv_fuses_pool(const Tensor& x, const Tensor& w, const Conv2dOptions& options) {
  const ConvGeometry g = checked_inputs("conv_fuses_pool", x, w, options);
  if constexpr (kHasCuda)
    if (x.device().type == DeviceType::cuda) return cuda::fuses_pool(g, options.impl, x, w);
  return false;
}

void conv_bias_relu_backward(const Tensor& x, const Tensor& w, const Tensor& mask, const Conv2dOptions& options,
                             const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias,
                             const LayerBelow& below) {
  constexpr std::string_view kOp = "conv_bias_relu_backward";
  require(x.defined(), "{}: x is undefined", kOp);
  const ConvGeometry g = checked_geometry(kOp, x.shape(), w, options);
  check(kOp, "x", x, x.shape(), w.dtype());
  check(kOp, "mask", mask, conv_mask_shape(output_shape(g)), DType::u8, true);
  check(kOp, "grad_y", grad_y, output_shape(g), w.dtype());
  check(kOp, "grad_x", grad_x, input_shape(g), w.dtype(), true);
  check(kOp, "grad_w", grad_w, weight_shape(g), w.dtype(), true);
  check(kOp, "grad_bias", grad_bias, {g.k}, w.dtype(), true);
  check(kOp, "the mask below", below.mask, conv_mask_shape(input_shape(g)), DType::u8, true);
  check(kOp, "the grad_bias below", below.grad_bias, {g.c}, w.dtype(), true);
  const bool has_below = below.mask.defined() || below.grad_bias.defined();
  require(grad_x.defined() || !has_below, "{}: what the layer below wants needs grad_x", kOp);

  require_one_device(kOp, grad_y, x, w, mask, grad_x, grad_w, grad_bias, below.mask, below.grad_bias);
  mark_written(kOp, grad_x, grad_w, grad_bias, below.grad_bias);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_y})
      return cuda::conv_backward(g, options.impl, x, w, mask, grad_y, grad_x, grad_w, grad_bias, below);
  if (cpu::conv_supports(g, w.dtype(), options.impl)) {
    cpu::conv_backward(g, options.impl, x, w, mask, grad_y, grad_x, grad_w, grad_bias);
  } else {
    Tensor masked = grad_y;
    if (mask.defined()) {
      masked = empty_like(grad_y);
      reference::apply_mask(grad_y, mask, masked);
    }
    if (grad_x.defined()) reference::conv2d_backward_input(masked, w, g, grad_x);
    if (grad_w.defined()) reference::conv2d_backward_weight(x, masked, g, grad_w);
    if (grad_bias.defined()) reference::conv2d_backward_bias(masked, grad_bias);
  }
  if (has_below) finish_for_layer_below(grad_x, below);
}

bool conv_backward_fuses_layer_below(const Tensor& x, const Tensor& w, const Conv2dOptions& options) {
  const ConvGeometry g = checked_inputs("conv_backward_fuses_layer_below", x, w, options);
  if constexpr (kHasCuda)
    if (x.device().type == DeviceType::cuda) return cuda::fuses_layer_below(g, options.impl, x, w);
  return false;
}

}  // namespace tandem::kernels
