// Broadcasting of two operands, and back.
#include "tandem/autograd/functions/broadcast.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/reduce/sum_to.h"

namespace tandem::autograd {

Broadcast broadcast(std::string_view op, const Tensor& a, const Tensor& b) {
  require(a.defined() && b.defined(), "{}: needs two defined tensors, got {} and {}", op, a, b);
  require(a.dtype() == b.dtype() && a.device() == b.device(),
          "{}: {} on {} and {} on {} must have one dtype and one device; use cast", op, a, name_of(a.device()), b,
          name_of(b.device()));
  Shape shape = a.rank() >= b.rank() ? a.shape() : b.shape();
  for (int dim = 1; dim <= shape.rank(); ++dim) {
    const std::int64_t from_a = dim <= a.rank() ? a.size(-dim) : 1, from_b = dim <= b.rank() ? b.size(-dim) : 1;
    require(from_a == from_b || from_a == 1 || from_b == 1, "{}: shapes {} and {} do not broadcast", op, a, b);
    shape[-dim] = from_a == 1 ? from_b : from_a;
  }
  const auto gives_layout = [&](const Tensor& operand) { return operand.shape() == shape && operand.is_dense(); };
  Tensor out;
  if (gives_layout(a)) {
    out = empty_like(a);
  } else if (gives_layout(b)) {
    out = empty_like(b);
  } else {
    out = Tensor::empty(shape, a.options(Layout::channels_last));
  }
  return {a.expand(shape), b.expand(shape), out};
}

Tensor sum_to_shape(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const Tensor result = Tensor::empty(shape, gradient.options(Layout::channels_last));
  kernels::sum_to(gradient, Out(result));
  return result;
}

}  // namespace tandem::autograd
