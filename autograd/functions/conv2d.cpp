// Differentiable two-dimensional convolution.
#include "autograd/functions/conv2d.h"

#include "autograd/functions/conv_operands.h"
#include "autograd/precision.h"
#include "autograd/record.h"
#include "core/memory.h"

namespace tandem::autograd {

namespace {

/// With `moments`, also those of y where a kernel makes them on its way.
void forward(const ConvOperands& operands, const Conv2dOptions& options, const Tensor& y, Tensor* moments) {
  const NoGrad no_grad;
  const auto& [images, filters, bias] = operands;
  const std::int64_t parts = moments != nullptr ? kernels::conv_moment_parts(images, filters, options) : 0;
  if (parts == 0) return kernels::conv2d_forward(images, filters, bias, options, y);
  const MemoryTagScope scope(MemoryTag::workspace);
  *moments = Tensor::empty({3, parts, y.size(1)}, {.dtype = DType::f64, .device = y.device()});
  kernels::conv2d_forward_with_moments(images, filters, bias, options, y, *moments);
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                Tensor* moments) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const ConvOperands operands = dense_operands(x, weight, bias);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  forward(operands, options, y, moments);
  if (!should_record({x, weight, bias})) return y;

  const SavedTensor saved_x(requires_grad(weight) ? operands.images : Tensor()),
      saved_weight(requires_grad(x) ? operands.filters : Tensor());
  return record("conv2d", {x, weight, bias}, y,
                [=, x_shape = x.shape(), weight_shape = weight.shape()](const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous(kLayout);
                  std::vector<Tensor> gradients(3);
                  if (context.needs(2)) {
                    gradients[2] = Tensor::empty({grad_y.size(1)}, grad_y.options());
                    kernels::conv2d_backward_bias(grad_y, gradients[2]);
                  }
                  if (context.needs(1)) {
                    gradients[1] = Tensor::empty(weight_shape, grad_y.options(kLayout));
                    kernels::conv2d_backward_weight(saved_x.get(), grad_y, options, gradients[1]);
                  }
                  if (context.needs(0)) {
                    gradients[0] = Tensor::empty(x_shape, grad_y.options(kLayout));
                    kernels::conv2d_backward_input(grad_y, saved_weight.get(), options, gradients[0]);
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
