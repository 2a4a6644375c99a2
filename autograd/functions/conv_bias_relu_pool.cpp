// Differentiable convolution, bias, ReLU and 2x2 maxima in one.
#include "autograd/functions/conv_bias_relu_pool.h"

#include "autograd/functions/conv_bias_relu.h"
#include "autograd/functions/conv_operands.h"
#include "autograd/functions/fused_layer.h"
#include "autograd/functions/max_pool2d.h"
#include "autograd/precision.h"
#include "autograd/record.h"
#include "kernels/pool/max_pool2d.h"

namespace tandem::autograd {

Tensor conv_bias_relu_pool(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Conv2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Pool2dOptions windows{.kernel = {2, 2}, .stride = {2, 2}};
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const auto [images, filters, addend] = dense_operands(x, weight, bias);
  if (!kernels::conv_fuses_pool(images, filters, options))
    return max_pool2d(conv_bias_relu(x, weight, bias, options), windows);

  const Shape y_shape = kernels::conv_pool_output_shape(x.shape(), weight.shape(), options);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const bool recorded = should_record({x, weight, bias});
  Tensor positions, mask;
  if (recorded) {
    positions = Tensor::empty(y_shape, {DType::u8, kLayout, x.device()});
    mask = Tensor::empty(kernels::conv_mask_shape(y_shape), {.dtype = DType::u8, .device = x.device()});
  }
  {
    const NoGrad no_grad;
    kernels::conv_bias_relu_pool_forward(images, filters, addend, options, y, positions, mask);
  }
  if (!recorded) return y;

  const auto own = std::make_shared<FusedLayer>(FusedLayer{mask, bias.defined() && requires_grad(bias), {}, {}});
  Tensor result =
      record("conv_bias_relu_pool", {x, weight, bias}, y,
             [options, windows, own, positions, below = layer_below(x, filters, options), saved_x = SavedTensor(images),
              saved_weight = SavedTensor(filters)](const BackwardContext& context) {
               Tensor bias_sum;
               own->take(context.grad_output(), bias_sum);
               const Tensor grad_y = context.grad_output().contiguous(kLayout);
               const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
               Tensor own_sum;  // where no layer above has made it
               if (context.needs(2) && !bias_sum.defined())
                 bias_sum = own_sum = Tensor::empty({grad_y.size(1)}, grad_y.options());
               const Tensor before_pooling = Tensor::empty(
                   kernels::conv2d_output_shape(from_x.shape(), from_weight.shape(), options), grad_y.options(kLayout));
               // And through the ReLU.
               kernels::max_pool2d_backward(grad_y, positions, windows, before_pooling, own_sum);
               return fused_gradients(context, from_x, from_weight, options, {}, before_pooling, bias_sum, below.get());
             });
  find_meta(result)->made_by.node->fused_layer = own;
  return result;
}

}  // namespace tandem::autograd
