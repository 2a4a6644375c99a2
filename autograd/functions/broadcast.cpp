// Broadcasting of two operands, and back.
#include "tandem/autograd/functions/broadcast.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/reduce/sum_to.h"

namespace tandem::autograd {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  Shape shape = a.rank() >= b.rank() ? a : b;
  for (int dim = 1; dim <= shape.rank(); ++dim) {
    const std::int64_t from_a = dim <= a.rank() ? a[-dim] : 1, from_b = dim <= b.rank() ? b[-dim] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return {};
    shape[-dim] = from_a == 1 ? from_b : from_a;
  }
  return shape;
}

Tensor broadcast_output(const Shape& shape, const Tensor& a, const Tensor& b) {
  for (const Tensor* const operand : {&a, &b}) {
    if (operand->shape() == shape && operand->is_dense()) return empty_like(*operand);
  }
  return Tensor::empty(shape, a.options(Layout::channels_last));
}

Broadcast broadcast(std::string_view op, const Tensor& a, const Tensor& b) {
  require(a.defined() && b.defined(), "{}: needs two defined tensors, got {} and {}", op, a, b);
  require(a.dtype() == b.dtype() && a.device() == b.device(),
          "{}: {} on {} and {} on {} must have one dtype and one device; use cast", op, a, name_of(a.device()), b,
          name_of(b.device()));
  const std::optional<Shape> shape = broadcast_shape(a.shape(), b.shape());
  require(shape.has_value(), "{}: shapes {} and {} do not broadcast; reshape or expand one", op, a, b);
  return {a.expand(*shape), b.expand(*shape), broadcast_output(*shape, a, b)};
}

Tensor sum_to_shape(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const Tensor result = Tensor::empty(shape, gradient.options(Layout::channels_last));
  kernels::sum_to(gradient, Out(result));
  return result;
}

}  // namespace tandem::autograd
