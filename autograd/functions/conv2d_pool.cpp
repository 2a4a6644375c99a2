// Differentiable convolution and 2x2 maxima in one.
#include "tandem/autograd/functions/conv2d_pool.h"

#include "tandem/autograd/functions/conv_operands.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/pool/max_pool2d.h"

namespace tandem::autograd {

namespace {

Tensor convolve_and_pool(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                         Tensor* moments) {
  constexpr Layout kLayout = Layout::channels_last;
  const Pool2dOptions windows{.kernel = 2, .stride = 2};
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const auto request = request_for("conv2d_pool_forward", kernels::PassKind::forward_pool_moments, x, weight);
  const kernels::ConvPlan plan = kernels::plan_conv(operands.images, operands.filters, options, request);
  if (!plan.runs_pool_with_moments()) return max_pool2d(conv2d_by(plan, operands, x, weight, bias), windows);

  const Shape y_shape = kernels::conv_pool_output_shape(x.shape(), weight.shape(), options);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const bool recorded = should_record({x, weight, bias});
  const Tensor positions = recorded ? Tensor::empty(y_shape, {DType::u8, kLayout, x.device()}) : Tensor();
  if (moments != nullptr) {
    const MemoryTagScope scope(MemoryTag::workspace);
    *moments = Tensor::empty({3, plan.moment_parts, y.size(1)}, {.dtype = DType::f64, .device = y.device()});
  }
  unrecorded([&] {
    kernels::conv2d_pool_forward(plan, operands.images, operands.filters, operands.bias, Out(y), Out(positions),
                                 Out(moments != nullptr ? *moments : Tensor()));
  });
  if (!recorded) return y;

  const SavedTensor saved_x(requires_grad(weight) ? operands.images : Tensor()),
      saved_weight(requires_grad(x) ? operands.filters : Tensor());
  return record("conv2d_pool", {x, weight, bias}, y, [=](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const kernels::ConvGeometry& g = plan.geometry;
    const Tensor before_pooling = Tensor::empty({g.n, g.k, g.p, g.q}, grad_y.options(kLayout));
    std::vector<Tensor> gradients(3);
    if (context.needs(2)) gradients[2] = context.new_gradient(2);
    kernels::max_pool2d_backward(grad_y, positions, windows, Out(before_pooling), Out(gradients[2]));
    add_conv2d_gradients(context, plan, saved_x, saved_weight, before_pooling, gradients);
    return gradients;
  });
}

}  // namespace

Tensor conv2d_pool(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  return convolve_and_pool(x, weight, bias, options, nullptr);
}

ConvWithMoments conv2d_pool_with_moments(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                         const Conv2dOptions& options) {
  Tensor moments;
  const Tensor y = convolve_and_pool(x, weight, bias, options, &moments);
  return {y, moments};
}

}  // namespace tandem::autograd
