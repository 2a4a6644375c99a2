// Differentiable two-dimensional convolution.
#include "tandem/autograd/functions/conv2d.h"

#include "tandem/autograd/functions/conv_operands.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/geometry.h"

namespace tandem::autograd {

namespace {

using kernels::ConvPlan;

constexpr Layout kLayout = Layout::channels_last;

/// With `moments`, also those of y where a kernel makes them on its way.
void forward(const ConvPlan& plan, const ConvOperands& operands, const Tensor& y, Tensor* moments) {
  const NoGrad no_grad;
  const auto& [images, filters, bias] = operands;
  if (!plan.runs_with_moments()) return kernels::conv2d_forward(plan, images, filters, bias, Out(y));
  const MemoryTagScope scope(MemoryTag::workspace);
  *moments = Tensor::empty({3, plan.moment_parts, y.size(1)}, {.dtype = DType::f64, .device = y.device()});
  kernels::conv2d_forward_with_moments(plan, images, filters, bias, Out(y), Out(*moments));
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                Tensor* moments) {
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const auto pass = moments != nullptr ? kernels::PassKind::forward_moments : kernels::PassKind::forward;
  const ConvPlan plan =
      kernels::plan_conv(operands.images, operands.filters, options, request_for("conv2d_forward", pass, x, weight));
  return conv2d_by(plan, operands, x, weight, bias, moments);
}

}  // namespace

Tensor conv2d_by(const ConvPlan& plan, const ConvOperands& operands, const Tensor& x, const Tensor& weight,
                 const Tensor& bias, Tensor* moments) {
  const kernels::ConvGeometry& g = plan.geometry;
  const Tensor y = Tensor::empty({g.n, g.k, g.p, g.q}, x.options(kLayout));
  forward(plan, operands, y, moments);
  if (!should_record({x, weight, bias})) return y;

  const SavedTensor saved_x(requires_grad(weight) ? operands.images : Tensor()),
      saved_weight(requires_grad(x) ? operands.filters : Tensor());
  return record("conv2d", {x, weight, bias}, y, [=](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    std::vector<Tensor> gradients(3);
    if (context.needs(2)) {
      gradients[2] = context.new_gradient(2);
      kernels::conv2d_backward_bias(grad_y, Out(gradients[2]));
    }
    add_conv2d_gradients(context, plan, saved_x, saved_weight, grad_y, gradients);
    return gradients;
  });
}

void add_conv2d_gradients(const BackwardContext& context, const ConvPlan& plan, const SavedTensor& x,
                          const SavedTensor& weight, const Tensor& grad_y, std::vector<Tensor>& gradients) {
  if (context.needs(1)) {
    gradients[1] = context.new_gradient(1, kLayout);
    kernels::conv2d_backward_weight(plan, x.get(), grad_y, Out(gradients[1]));
  }
  if (context.needs(0)) {
    gradients[0] = context.new_gradient(0, kLayout);
    kernels::conv2d_backward_input(plan, grad_y, weight.get(), Out(gradients[0]));
  }
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  return convolve(x, weight, bias, options, nullptr);
}

ConvWithMoments conv2d_with_moments(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const Conv2dOptions& options) {
  Tensor moments;
  const Tensor y = convolve(x, weight, bias, options, &moments);
  return {y, moments};
}

}  // namespace tandem::autograd
