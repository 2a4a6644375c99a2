// Differentiable change of dtype.
#include "tandem/autograd/functions/cast.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/cast/cast.h"

namespace tandem::autograd {

namespace {

Tensor converted(const Tensor& x, DType dtype) {
  Tensor result = Tensor::empty(x.shape(), {dtype, Layout::row_major, x.device()});
  if (x.is_dense() && x.numel() > 0) result = result.as_strided(x.shape(), x.strides(), 0);
  kernels::cast(x, Out(result));
  return result;
}

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  require_defined("cast", x);
  if (x.dtype() == dtype) return x;
  const Tensor y = unrecorded([&] { return converted(x, dtype); });
  if (!is_floating(dtype)) return y;
  return record("cast", {x}, y, [dtype = x.dtype()](const BackwardContext& context) {
    return std::vector<Tensor>{converted(context.grad_output(), dtype)};
  });
}

}  // namespace tandem::autograd
