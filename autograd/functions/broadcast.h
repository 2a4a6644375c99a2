// Broadcasting, as NumPy and PyTorch define it. Internal to autograd/functions.
#pragma once

#include "tandem/core/tensor.h"

#include <optional>
#include <string_view>

namespace tandem::autograd {

/// Operands brought to one shape (by strides of 0), and a fresh output for them, laid out like the larger operand.
struct Broadcast {
  Tensor a, b, out;
};

/// Throws Error where the shapes do not broadcast or dtypes or devices differ; `op` names the caller, who has switched
/// recording off.
Broadcast broadcast(std::string_view op, const Tensor& a, const Tensor& b);

/// The shape that both expand to; empty where there is none.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// A fresh tensor of that shape, laid out like an operand that has it.
Tensor broadcast_output(const Shape& shape, const Tensor& a, const Tensor& b);

/// Sums `gradient` over the dimensions that broadcasting added to `shape`; the tensor itself if it added none.
Tensor sum_to_shape(const Tensor& gradient, const Shape& shape);

}  // namespace tandem::autograd
