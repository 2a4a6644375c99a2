// Differentiable max pooling.
#include "tandem/autograd/functions/max_pool2d.h"

#include "tandem/autograd/record.h"
#include "tandem/kernels/pool/max_pool2d.h"

namespace tandem::autograd {

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Shape y_shape = kernels::pool2d_output_shape("max_pool2d", x.shape(), options);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  Tensor indices;
  if (should_record({x})) {
    indices = Tensor::empty(y_shape, {kernels::max_pool2d_index_dtype(options), kLayout, x.device()});
  }
  unrecorded([&] { kernels::max_pool2d_forward(x.contiguous(kLayout), options, Out(y), Out(indices)); });
  return record("max_pool2d", {x}, y, [options, indices, x_shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const Tensor grad_x = Tensor::empty(x_shape, grad_y.options(kLayout));
    kernels::max_pool2d_backward(grad_y, indices, options, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
