// Differentiable dropout.
#include "tandem/autograd/functions/dropout.h"

#include "tandem/autograd/record.h"
#include "tandem/kernels/dropout/dropout.h"

namespace tandem::autograd {

Tensor dropout(const Tensor& x, double p, const RandomKey& key, const Tensor& step) {
  constexpr Layout kLayout = Layout::channels_last;
  const Tensor y = Tensor::empty(x.shape(), x.options(kLayout));
  unrecorded([&] { kernels::dropout_forward(x.contiguous(kLayout), p, key, Out(y), step); });
  return record("dropout", {x}, y, [p, key, step](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    const Tensor grad_x = Tensor::empty(grad_y.shape(), grad_y.options(kLayout));
    kernels::dropout_backward(grad_y, p, key, Out(grad_x), step);
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
