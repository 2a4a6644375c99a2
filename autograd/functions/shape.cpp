// Differentiable changes of shape.
#include "autograd/functions/shape.h"

#include "autograd/record.h"

namespace tandem::autograd {

namespace {

Tensor reshaped(const Tensor& x, const Shape& shape) { return x.contiguous().view(shape); }

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  return record("reshape", {x}, reshaped(x, shape), [old_shape = x.shape()](const BackwardContext& context) {
    return std::vector<Tensor>{reshaped(context.grad_output(), old_shape)};
  });
}

Tensor flatten(const Tensor& x) {
  require(x.rank() >= 1, "flatten: needs a batch dimension, got {}", describe(x));
  std::int64_t rest = 1;
  for (int dim = 1; dim < x.rank(); ++dim) rest *= x.size(dim);
  return reshape(x, {x.size(0), rest});
}

Tensor permute(const Tensor& x, const std::vector<int>& order) {
  const Tensor y = x.permute(order);
  std::vector<int> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(x.shape().wrap(order[i]))] = static_cast<int>(i);
  return record("permute", {x}, y, [inverse](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().permute(inverse)};
  });
}

Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length) {
  return record("narrow", {x}, x.narrow(dim, start, length),
                [dim, start, length, shape = x.shape()](const BackwardContext& context) {
                  const Tensor grad_x = Tensor::zeros(shape, context.grad_output().options(Layout::channels_last));
                  grad_x.narrow(dim, start, length).copy_from(context.grad_output());
                  return std::vector<Tensor>{grad_x};
                });
}

}  // namespace tandem::autograd
