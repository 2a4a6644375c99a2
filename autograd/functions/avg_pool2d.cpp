// Differentiable average pooling.
#include "tandem/autograd/functions/avg_pool2d.h"

#include "tandem/autograd/record.h"
#include "tandem/kernels/pool/avg_pool2d.h"

namespace tandem::autograd {

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor y = Tensor::empty(kernels::pool2d_output_shape("avg_pool2d", x.shape(), options), x.options(kLayout));
  unrecorded([&] { kernels::avg_pool2d_forward(x.contiguous(kLayout), options, Out(y)); });
  return record("avg_pool2d", {x}, y, [options, x_shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const Tensor grad_x = Tensor::empty(x_shape, grad_y.options(kLayout));
    kernels::avg_pool2d_backward(grad_y, options, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
