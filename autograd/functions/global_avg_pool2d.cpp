// Differentiable mean over all pixels.
#include "tandem/autograd/functions/global_avg_pool2d.h"

#include "tandem/autograd/record.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"

namespace tandem::autograd {

Tensor global_avg_pool2d(const Tensor& x) {
  constexpr Layout kLayout = Layout::channels_last;
  require(x.rank() == 4, "global_avg_pool2d: needs images [N, C, H, W], got {}", describe(x));
  const Tensor y = Tensor::empty({x.size(0), x.size(1), 1, 1}, x.options(kLayout));
  unrecorded([&] { kernels::global_avg_pool2d_forward(x.contiguous(kLayout), Out(y)); });
  return record("global_avg_pool2d", {x}, y, [x_shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const Tensor grad_x = Tensor::empty(x_shape, grad_y.options(kLayout));
    kernels::global_avg_pool2d_backward(grad_y, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
