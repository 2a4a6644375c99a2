// Differentiable convolution, bias, ReLU and 2x2 maxima in one.
#include "tandem/autograd/functions/conv_bias_relu_pool.h"

#include "tandem/autograd/functions/conv_operands.h"
#include "tandem/autograd/functions/conv_producer.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/pool/max_pool2d.h"

namespace tandem::autograd {

Tensor conv_bias_relu_pool(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Conv2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Pool2dOptions windows{.kernel = 2, .stride = 2};
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const auto& [images, filters, addend] = operands;
  const auto request = request_for("conv_bias_relu_pool_forward", kernels::PassKind::forward_pool, x, weight);
  const kernels::ConvPlan plan = kernels::plan_conv(images, filters, options, request);
  if (!plan.fuses_pool) return max_pool2d(conv_bias_relu_by(plan, operands, x, weight, bias), windows);

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
    kernels::conv_bias_relu_pool_forward(plan, images, filters, addend, Out(y), Out(positions), Out(mask));
  }
  if (!recorded) return y;

  const auto own = std::make_shared<ConvProducer>(mask, bias);
  return record(
      "conv_bias_relu_pool", {x, weight, bias}, y,
      [plan, windows, own, positions, below = layer_below(plan, x, filters), saved_x = SavedTensor(images),
       saved_weight = SavedTensor(filters)](const BackwardContext& context) {
        Tensor bias_sum;
        own->consume_sum(context.grad_output(), bias_sum);
        const Tensor grad_y = context.grad_output().contiguous(kLayout);
        const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
        Tensor own_sum;  // where no layer above has made it
        if (context.needs(2) && !bias_sum.defined()) bias_sum = own_sum = context.new_gradient(2);
        const kernels::ConvGeometry& g = plan.geometry;
        const Tensor before_pooling = Tensor::empty({g.n, g.k, g.p, g.q}, grad_y.options(kLayout));
        // And through the ReLU.
        kernels::max_pool2d_backward(grad_y, positions, windows, Out(before_pooling), Out(own_sum));
        return fused_gradients(context, plan, from_x, from_weight, {}, before_pooling, bias_sum, below.get());
      },
      own);
}

}  // namespace tandem::autograd
