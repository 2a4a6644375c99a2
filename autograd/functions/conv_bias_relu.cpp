// Differentiable convolution, bias and ReLU in one.
#include "autograd/functions/conv_bias_relu.h"

#include "autograd/precision.h"
#include "autograd/record.h"

namespace tandem::autograd {

Tensor conv_bias_relu(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const Tensor images = x.contiguous(kLayout), filters = weight.contiguous(kLayout);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const bool recorded = should_record({x, weight, bias});
  Tensor mask;
  if (recorded) mask = Tensor::empty(kernels::conv_mask_shape(y_shape), {.dtype = DType::u8, .device = x.device()});
  kernels::conv_bias_relu_forward(images, filters, bias.defined() ? bias.contiguous() : bias, options, y, mask);
  if (!recorded) return y;

  // The fused backward takes both; neither is a copy where it is stored the way the kernels want.
  return record("conv_bias_relu", {x, weight, bias}, y,
                [options, mask, saved_x = SavedTensor(images),
                 saved_weight = SavedTensor(filters)](const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous(kLayout);
                  const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
                  std::vector<Tensor> gradients(3);
                  if (context.needs(0)) gradients[0] = Tensor::empty(from_x.shape(), grad_y.options(kLayout));
                  if (context.needs(1)) gradients[1] = Tensor::empty(from_weight.shape(), grad_y.options(kLayout));
                  if (context.needs(2)) gradients[2] = Tensor::empty({grad_y.size(1)}, grad_y.options());
                  kernels::conv_bias_relu_backward(from_x, from_weight, mask, options, grad_y, gradients[0],
                                                   gradients[1], gradients[2]);
                  return gradients;
                });
}

}  // namespace tandem::autograd
