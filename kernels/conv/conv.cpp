// Convolution entry points: checks, and the way to the CPU or a GPU.
#include "tandem/kernels/conv/conv.h"

#include "tandem/core/timeline.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/checks.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/cuda_choice.h"

namespace tandem::kernels {
namespace {

using namespace conv_checks;

/// A plan for x and w of which a pass asks only that they are tensors; the rest is checked as the pass runs.
ConvPlan plan_for_pass(std::string_view op, const Tensor& x, std::string_view name, const Tensor& w,
                       const Conv2dOptions& options) {
  require(x.defined(), "{}: {} is undefined", op, name);
  return plan_without_runners(op, x.shape(), w, options);
}

/// By rule on the CPU.
std::string_view choice_on_cpu(const ConvPlan& plan, const ConvRunner& runner) {
  if (runner.is_chosen()) return runner.on_cpu;
  count_conv_choice();
  return cpu::choose_conv(plan.geometry, plan.dtype, plan.impl);
}

/// What a layer below wants done with grad_x, on the CPU.
void finish_for_layer_below_on_cpu(const Out& grad_x, const LayerBelow& below) {
  if (below.mask.defined() && cpu::computes_in_float(grad_x.dtype())) {
    cpu::apply_mask(grad_x, below.mask);
  } else if (below.mask.defined()) {
    reference::apply_mask(grad_x, below.mask, grad_x);
  }
  if (below.grad_bias.defined()) conv2d_backward_bias(grad_x, below.grad_bias);
}

void require_device(std::string_view op, const ConvPlan& plan, const Tensor& tensor) {
  require(tensor.device() == plan.device, "{}: the plan is for {}, but {} is on {}", op, name_of(plan.device), tensor,
          name_of(tensor.device()));
}

/// What `passes` of a convolution compute, and the least that they move: each operand once for each.
void note_work(const ConvPlan& plan, int passes) {
  if (!work_is_counted()) return;
  const ConvGeometry& g = plan.geometry;
  const auto count = [](const Shape& shape) { return static_cast<double>(element_count(shape)); };
  const Shape x = input_shape(g), w = weight_shape(g), y = output_shape(g);
  const double flops = 2.0 * count(y) * count(w) / static_cast<double>(std::max<std::int64_t>(g.k, 1));
  add_work(passes * flops, passes * (count(x) + count(w) + count(y)) * static_cast<double>(size_of(plan.dtype)));
}

void check_forward(std::string_view op, const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const ConvGeometry& g = plan.geometry;
  check(op, "w", w, weight_shape(g), plan.dtype);
  check(op, "x", x, input_shape(g), plan.dtype);
  require_device(op, plan, w);
  check(op, "bias", bias, {g.k}, plan.dtype, true);
}

/// Of 2x2 windows side by side.
Shape pooled_shape(const ConvGeometry& g) { return {g.n, g.k, g.p / 2, g.q / 2}; }

void check_moments(std::string_view op, const ConvPlan& plan, const Out& moments) {
  const std::int64_t parts = plan.moment_parts, k = plan.geometry.k;
  require(moments.defined() && moments.dtype() == DType::f64 && moments.shape() == Shape{3, parts, k},
          "{}: moments must be f64 [3, {}, {}], got {}", op, parts, k,
          moments.defined() ? describe(moments) : "nothing");
}

void forward(std::string_view op, const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
             const Out& y, const Out& mask) {
  const ConvGeometry& g = plan.geometry;
  check_forward(op, plan, x, w, bias);
  check(op, "y", y, output_shape(g), plan.dtype);
  check(op, "mask", mask, conv_mask_shape(output_shape(g)), DType::u8, true);
  require_one_device(op, y, x, w, bias, mask);
  note_work(plan, 1);
  if constexpr (kHasCuda)
    if (const CudaOp on_gpu{op, y})
      return cuda::conv_forward(plan, x, w, {.bias = bias, .relu = relu, .mask = mask}, y);
  const std::string_view rule = choice_on_cpu(plan, plan.forward);
  if (rule != kPlainLoops) return cpu::conv_forward(plan, rule, x, w, bias, relu, mask, y);
  reference::conv2d_forward(x, w, bias, g, relu, y);
  if (mask.defined()) reference::sign_mask(y, mask);
}

/// The gradients that are defined, after their checks.
void backward(std::string_view op, const ConvPlan& plan, const ConvBackwardInputs& from, const ConvGradients& to,
              const LayerBelow& below) {
  require_device(op, plan, from.grad_y);
  note_work(plan, (to.x.defined() ? 1 : 0) + (to.w.defined() ? 1 : 0));
  if constexpr (kHasCuda)
    if (const CudaOp on_gpu{op, from.grad_y}) return cuda::conv_backward(plan, from, to, below);
  const ConvGeometry& g = plan.geometry;
  const std::string_view rule = choice_on_cpu(plan, to.x.defined() ? plan.backward_input : plan.backward_weight);
  if (rule != kPlainLoops) {
    cpu::conv_backward(plan, rule, from, to);
  } else {
    Tensor masked = from.grad_y;
    if (from.mask.defined()) {
      masked = empty_like(from.grad_y);
      reference::apply_mask(from.grad_y, from.mask, Out(masked));
    }
    if (to.x.defined()) reference::conv2d_backward_input(masked, from.w, g, to.x);
    if (to.w.defined()) reference::conv2d_backward_weight(from.x, masked, g, to.w);
    if (to.bias.defined()) reference::conv2d_backward_bias(masked, to.bias);
  }
  if (to.x.defined()) finish_for_layer_below_on_cpu(to.x, below);
}

void check_below(std::string_view op, const ConvPlan& plan, const LayerBelow& below) {
  check(op, "the mask below", below.mask, conv_mask_shape(input_shape(plan.geometry)), DType::u8, true);
  check(op, "the grad_bias below", below.grad_bias, {plan.geometry.c}, plan.dtype, true);
}

}  // namespace

void conv2d_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y) {
  forward("conv2d_forward", plan, x, w, bias, false, y, {});
}

void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options, const Out& y) {
  conv2d_forward(plan_for_pass("conv2d_forward", x, "x", w, options), x, w, bias, y);
}

void conv2d_forward_with_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                                 const Out& y, const Out& moments) {
  constexpr std::string_view kOp = "conv2d_forward_with_moments";
  require(plan.runs_with_moments(), "{}: there are no kernels for {} and these options; batch norm reads y instead",
          kOp, x);
  check_forward(kOp, plan, x, w, bias);
  check(kOp, "y", y, output_shape(plan.geometry), plan.dtype);
  check_moments(kOp, plan, moments);
  require_one_device(kOp, y, x, w, bias, moments);
  note_work(plan, 1);
  if constexpr (kHasCuda)
    if (const CudaOp on_gpu{kOp, y}) cuda::conv_forward_moments(plan, x, w, bias, y, moments);
}

void conv2d_backward_input(const ConvPlan& plan, const Tensor& grad_y, const Tensor& w, const Out& grad_x,
                           const LayerBelow& below) {
  constexpr std::string_view kOp = "conv2d_backward_input";
  const ConvGeometry& g = plan.geometry;
  check(kOp, "w", w, weight_shape(g), plan.dtype);
  check(kOp, "grad_y", grad_y, output_shape(g), plan.dtype);
  check(kOp, "grad_x", grad_x, input_shape(g), plan.dtype);
  check_below(kOp, plan, below);
  require_one_device(kOp, grad_x, grad_y, w, below.mask, below.grad_bias);
  backward(kOp, plan, {.w = w, .grad_y = grad_y}, {.x = grad_x}, below);
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options, const Out& grad_x,
                           const LayerBelow& below) {
  const ConvPlan plan = plan_for_pass("conv2d_backward_input", grad_x, "grad_x", w, options);
  conv2d_backward_input(plan, grad_y, w, grad_x, below);
}

void conv2d_backward_weight(const ConvPlan& plan, const Tensor& x, const Tensor& grad_y, const Out& grad_w) {
  constexpr std::string_view kOp = "conv2d_backward_weight";
  const ConvGeometry& g = plan.geometry;
  check(kOp, "grad_w", grad_w, weight_shape(g), plan.dtype);
  check(kOp, "x", x, input_shape(g), plan.dtype);
  check(kOp, "grad_y", grad_y, output_shape(g), plan.dtype);
  require_one_device(kOp, grad_w, x, grad_y);
  backward(kOp, plan, {.x = x, .grad_y = grad_y}, {.w = grad_w}, {});
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Conv2dOptions& options, const Out& grad_w) {
  const ConvPlan plan = plan_for_pass("conv2d_backward_weight", x, "x", grad_w, options);
  conv2d_backward_weight(plan, x, grad_y, grad_w);
}

void conv2d_backward_bias(const Tensor& grad_y, const Out& grad_bias, const Tensor& mask) {
  constexpr std::string_view kOp = "conv2d_backward_bias";
  require(grad_y.defined() && grad_y.rank() == 4, "{}: needs grad_y [N,K,P,Q]", kOp);
  check(kOp, "grad_y", grad_y, grad_y.shape(), grad_y.dtype());
  check(kOp, "grad_bias", grad_bias, {grad_y.size(1)}, grad_y.dtype());
  check(kOp, "mask", mask, conv_mask_shape(grad_y.shape()), DType::u8, true);
  require_one_device(kOp, grad_y, grad_bias, mask);
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_y}) return cuda::conv_backward_bias(grad_y, mask, grad_bias);
  if (mask.defined()) {
    const Tensor masked = empty_like(grad_y);
    reference::apply_mask(grad_y, mask, Out(masked));
    return conv2d_backward_bias(masked, grad_bias);
  }
  if (cpu::computes_in_float(grad_y.dtype()) && grad_y.numel() > 0) return cpu::conv_backward_bias(grad_y, grad_bias);
  reference::conv2d_backward_bias(grad_y, grad_bias);
}

void conv_bias_relu_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                            const Out& mask) {
  forward("conv_bias_relu_forward", plan, x, w, bias, true, y, mask);
}

void conv_bias_relu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                            const Out& y, const Out& mask) {
  conv_bias_relu_forward(plan_for_pass("conv_bias_relu_forward", x, "x", w, options), x, w, bias, y, mask);
}

Shape conv_pool_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  const Shape y = conv2d_output_shape(x, w, options);
  return {y[0], y[1], y[2] / 2, y[3] / 2};
}

void conv_bias_relu_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                                 const Out& y, const Out& positions, const Out& mask) {
  constexpr std::string_view kOp = "conv_bias_relu_pool_forward";
  require(plan.runs_pool_with_relu(), "{}: there are no kernels for {} and these options; pool the result instead", kOp,
          x);
  const Shape pooled = pooled_shape(plan.geometry);
  check_forward(kOp, plan, x, w, bias);
  check(kOp, "y", y, pooled, plan.dtype);
  check(kOp, "positions", positions, pooled, DType::u8, true);
  check(kOp, "mask", mask, conv_mask_shape(pooled), DType::u8, true);
  require_one_device(kOp, y, x, w, bias, positions, mask);
  note_work(plan, 1);
  if constexpr (kHasCuda)
    if (const CudaOp on_gpu{kOp, y}) cuda::conv_pool_forward(plan, x, w, bias, {y, positions, mask});
}

void conv2d_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                         const Out& positions, const Out& moments) {
  constexpr std::string_view kOp = "conv2d_pool_forward";
  require(plan.runs_pool_with_moments(), "{}: there are no kernels for {} and these options; pool the result instead",
          kOp, x);
  const Shape pooled = pooled_shape(plan.geometry);
  check_forward(kOp, plan, x, w, bias);
  check(kOp, "y", y, pooled, plan.dtype);
  check(kOp, "positions", positions, pooled, DType::u8, true);
  if (moments.defined()) check_moments(kOp, plan, moments);
  require_one_device(kOp, y, x, w, bias, positions, moments);
  note_work(plan, 1);
  if constexpr (kHasCuda)
    if (const CudaOp on_gpu{kOp, y}) cuda::conv_pool_forward_moments(plan, x, w, bias, {y, positions, moments});
}

void conv_bias_relu_backward(const ConvPlan& plan, const ConvBackwardInputs& from, const ConvGradients& to,
                             const LayerBelow& below) {
  constexpr std::string_view kOp = "conv_bias_relu_backward";
  const ConvGeometry& g = plan.geometry;
  check(kOp, "w", from.w, weight_shape(g), plan.dtype);
  check(kOp, "x", from.x, input_shape(g), plan.dtype);
  check(kOp, "mask", from.mask, conv_mask_shape(output_shape(g)), DType::u8, true);
  check(kOp, "grad_y", from.grad_y, output_shape(g), plan.dtype);
  check(kOp, "grad_x", to.x, input_shape(g), plan.dtype, true);
  check(kOp, "grad_w", to.w, weight_shape(g), plan.dtype, true);
  check(kOp, "grad_bias", to.bias, {g.k}, plan.dtype, true);
  check_below(kOp, plan, below);
  const bool has_below = below.mask.defined() || below.grad_bias.defined();
  require(to.x.defined() || !has_below, "{}: what the layer below wants needs grad_x", kOp);
  require_one_device(kOp, from.grad_y, from.x, from.w, from.mask, to.x, to.w, to.bias, below.mask, below.grad_bias);
  backward(kOp, plan, from, to, below);
}

void conv_bias_relu_backward(const Conv2dOptions& options, const ConvBackwardInputs& from, const ConvGradients& to,
                             const LayerBelow& below) {
  conv_bias_relu_backward(plan_for_pass("conv_bias_relu_backward", from.x, "x", from.w, options), from, to, below);
}

}  // namespace tandem::kernels
