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

/// With `moments`, also those of y where a kernel makes them on its way.
void forward(const ConvPlan& plan, const ConvOperands& operands, const Tensor& y, Tensor* moments) {
  const NoGrad no_grad;
  const auto& [images, filters, bias] = operands;
  if (plan.moment_parts == 0) return kernels::conv2d_forward(plan, images, filters, bias, Out(y));
  const MemoryTagScope scope(MemoryTag::workspace);
  *moments = Tensor::empty({3, plan.moment_parts, y.size(1)}, {.dtype = DType::f64, .device = y.device()});
  kernels::conv2d_forward_with_moments(plan, images, filters, bias, Out(y), Out(*moments));
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                Tensor* moments) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const auto pass = moments != nullptr ? kernels::PassKind::forward_moments : kernels::PassKind::forward;
  const ConvPlan plan =
      kernels::plan_conv(operands.images, operands.filters, options, request_for("conv2d_forward", pass, x, weight));
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
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
    if (context.needs(1)) {
      gradients[1] = context.new_gradient(1, kLayout);
      kernels::conv2d_backward_weight(plan, saved_x.get(), grad_y, Out(gradients[1]));
    }
    if (context.needs(0)) {
      gradients[0] = context.new_gradient(0, kLayout);
      kernels::conv2d_backward_input(plan, grad_y, saved_weight.get(), Out(gradients[0]));
    }
    return gradients;
  });
}

}  // namespace

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
