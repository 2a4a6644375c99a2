// Differentiable two-dimensional convolution.
#include "autograd/functions/conv2d.h"

#include "autograd/precision.h"
#include "autograd/record.h"

#include "core/memory.h"

namespace tandem::autograd {

namespace {

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                Tensor* moments) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const Tensor images = x.contiguous(kLayout), filters = weight.contiguous(kLayout);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const Tensor addend = bias.defined() ? bias.contiguous() : bias;
  const std::int64_t parts = moments != nullptr ? kernels::conv_moment_parts(images, filters, options) : 0;
  if (parts > 0) {
    const MemoryTagScope scope(MemoryTag::workspace);
    *moments = Tensor::empty({3, parts, y_shape[1]}, {.dtype = DType::f64, .device = x.device()});
    kernels::conv2d_forward_with_moments(images, filters, addend, options, y, *moments);
  } else {
    kernels::conv2d_forward(images, filters, addend, options, y);
  }
  if (!should_record({x, weight, bias})) return y;

  const SavedTensor saved_x(requires_grad(weight) ? images : Tensor()),
      saved_weight(requires_grad(x) ? filters : Tensor());
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
