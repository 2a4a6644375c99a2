// Differentiable convolution, bias and ReLU in one.
#include "autograd/functions/conv_bias_relu.h"

#include "autograd/functions/conv_operands.h"
#include "autograd/functions/fused_layer.h"
#include "autograd/node.h"
#include "autograd/precision.h"
#include "autograd/record.h"

namespace tandem::autograd {

Tensor conv_bias_relu(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const auto [images, filters, addend] = dense_operands(x, weight, bias);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const bool recorded = should_record({x, weight, bias});
  Tensor mask;
  if (recorded) mask = Tensor::empty(kernels::conv_mask_shape(y_shape), {.dtype = DType::u8, .device = x.device()});
  {
    const NoGrad no_grad;
    kernels::conv_bias_relu_forward(images, filters, addend, options, y, mask);
  }
  if (!recorded) return y;

  const auto own = std::make_shared<FusedLayer>(FusedLayer{mask, bias.defined() && requires_grad(bias), {}, {}});
  // The fused backward takes both; neither is a copy where it is stored the way the kernels want.
  Tensor result = record("conv_bias_relu", {x, weight, bias}, y,
                         [options, own, below = layer_below(x, filters, options), saved_x = SavedTensor(images),
                          saved_weight = SavedTensor(filters)](const BackwardContext& context) {
                           Tensor bias_sum;
                           const bool masked = own->take(context.grad_output(), bias_sum);
                           return fused_gradients(context, saved_x.get(), saved_weight.get(), options,
                                                  masked ? Tensor() : own->mask,
                                                  context.grad_output().contiguous(kLayout), bias_sum, below.get());
                         });
  find_meta(result)->made_by.node->fused_layer = own;
  return result;
}

}  // namespace tandem::autograd
