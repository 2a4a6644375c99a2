// Differentiable convolution, bias and ReLU in one.
#include "tandem/autograd/functions/conv_bias_relu.h"

#include "tandem/autograd/functions/conv_operands.h"
#include "tandem/autograd/functions/conv_producer.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/conv/geometry.h"

namespace tandem::autograd {

Tensor conv_bias_relu(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const auto request = request_for("conv_bias_relu_forward", kernels::PassKind::forward, x, weight);
  return conv_bias_relu_by(kernels::plan_conv(operands.images, operands.filters, options, request), operands, x, weight,
                           bias);
}

Tensor conv_bias_relu_by(const kernels::ConvPlan& plan, const ConvOperands& operands, const Tensor& x,
                         const Tensor& weight, const Tensor& bias) {
  constexpr Layout kLayout = Layout::channels_last;
  const kernels::ConvGeometry& g = plan.geometry;
  const Shape y_shape{g.n, g.k, g.p, g.q};
  const auto& [images, filters, addend] = operands;
  const bool recorded = should_record({x, weight, bias});
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  Tensor mask;
  if (recorded) mask = Tensor::empty(kernels::conv_mask_shape(y_shape), {.dtype = DType::u8, .device = x.device()});
  {
    const NoGrad no_grad;
    kernels::conv_bias_relu_forward(plan, images, filters, addend, Out(y), Out(mask));
  }
  if (!recorded) return y;

  const auto own = std::make_shared<ConvProducer>(mask, bias);
  // The fused backward takes both; neither is a copy where it is stored the way the kernels want.
  return record(
      "conv_bias_relu", {x, weight, bias}, y,
      [plan, own, below = layer_below(plan, x, filters), saved_x = SavedTensor(images),
       saved_weight = SavedTensor(filters)](const BackwardContext& context) {
        Tensor bias_sum;
        const bool masked = own->consume_sum(context.grad_output(), bias_sum);
        return fused_gradients(context, plan, saved_x.get(), saved_weight.get(), masked ? Tensor() : own->mask,
                               context.grad_output().contiguous(kLayout), bias_sum, below.get());
      },
      own);
}

}  // namespace tandem::autograd
