// Differentiable changes of shape.
#include "tandem/autograd/functions/shape.h"

#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/record.h"

namespace tandem::autograd {

namespace {

Tensor reshaped(const Tensor& x, const Shape& shape) { return x.contiguous().view(shape); }

/// The shape of x's elements that `requested` describes, with the size that its -1 stands for.
Shape resolved_shape(const Tensor& x, const Shape& requested) {
  std::int64_t known = 1;
  int open = -1;
  bool overflow = false;
  for (int dim = 0; dim < requested.rank(); ++dim) {
    const std::int64_t size = requested[dim];
    require(size >= 0 || (size == -1 && open < 0), "reshape: shape {} may hold one -1 and no other negative size",
            requested);
    if (size < 0) {
      open = dim;
    } else {
      overflow = __builtin_mul_overflow(known, size, &known) || overflow;
    }
  }
  if (open < 0) {
    require(!overflow && known == x.numel(),
            "reshape: {} has {} elements, and shape {} has not; give a shape of as many, or -1 for one of its sizes", x,
            x.numel(), requested);
    return requested;
  }
  require(!overflow && known > 0 && x.numel() % known == 0,
          "reshape: {} has {} elements, which no size for the -1 of shape {} gives; the other sizes must divide them",
          x, x.numel(), requested);
  Shape shape = requested;
  shape[open] = x.numel() / known;
  return shape;
}

/// Records a view of some elements of x: `part` takes x, or its gradient, to them.
template <typename Part>
Tensor record_part(std::string_view name, const Tensor& x, const Part& part) {
  const Tensor y = unrecorded([&] { return part(x); });
  return record(name, {x}, y, [part, shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_x = Tensor::zeros(shape, context.grad_output().options(Layout::channels_last));
    part(grad_x).copy_from(context.grad_output());
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& requested) {
  require_defined("reshape", x);
  const Shape shape = resolved_shape(x, requested);
  const Tensor y = unrecorded([&] { return reshaped(x, shape); });
  return record("reshape", {x}, y, [old_shape = x.shape()](const BackwardContext& context) {
    return std::vector<Tensor>{reshaped(context.grad_output(), old_shape)};
  });
}

Tensor flatten(const Tensor& x) {
  require_defined("flatten", x);
  require(x.rank() >= 1, "flatten: needs a batch dimension, got {}", describe(x));
  std::int64_t rest = 1;
  for (int dim = 1; dim < x.rank(); ++dim) rest *= x.size(dim);
  return reshape(x, {x.size(0), rest});
}

Tensor permute(const Tensor& x, const std::vector<int>& order) {
  for (const int dim : order) dimension_of("permute", x, dim);
  const Tensor y = unrecorded([&] { return x.permute(order); });
  std::vector<int> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(x.shape().wrap(order[i]))] = static_cast<int>(i);
  return record("permute", {x}, y, [inverse](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().permute(inverse)};
  });
}

Tensor transpose(const Tensor& x, int a, int b) {
  for (const int dim : {a, b}) dimension_of("transpose", x, dim);
  const Tensor y = unrecorded([&] { return x.transpose(a, b); });
  return record("transpose", {x}, y, [a, b](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().transpose(a, b)};
  });
}

Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length, std::int64_t step) {
  dimension_of("narrow", x, dim);
  const auto part = [=](const Tensor& whole) { return whole.narrow(dim, start, length, step); };
  return record_part("narrow", x, part);
}

Tensor select(const Tensor& x, int dim, std::int64_t index) {
  dimension_of("select", x, dim);
  const auto part = [=](const Tensor& whole) { return whole.select(dim, index); };
  return record_part("select", x, part);
}

Tensor squeeze(const Tensor& x, int dim) {
  const int removed = dimension_of("squeeze", x, dim);
  const Tensor y = unrecorded([&] { return x.squeeze(dim); });
  return record("squeeze", {x}, y, [removed](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().unsqueeze(removed)};
  });
}

Tensor unsqueeze(const Tensor& x, int dim) {
  require_defined("unsqueeze", x);
  require(x.rank() < kMaxRank, "unsqueeze: {} has {} dimensions already, the most that there can be", x, x.rank());
  require(dim >= -x.rank() - 1 && dim <= x.rank(),
          "unsqueeze: dimension {} is out of range for {}; give one from {} to {}", dim, x, -x.rank() - 1, x.rank());
  const Tensor y = unrecorded([&] { return x.unsqueeze(dim); });
  return record("unsqueeze", {x}, y, [dim](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().squeeze(dim)};
  });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  require_defined("expand", x);
  const Tensor y = unrecorded([&] { return x.expand(shape); });
  return record("expand", {x}, y, [old_shape = x.shape()](const BackwardContext& context) {
    return std::vector<Tensor>{sum_to_shape(context.grad_output(), old_shape)};
  });
}

}  // namespace tandem::autograd
