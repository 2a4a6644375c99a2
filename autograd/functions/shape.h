// Differentiable changes of shape.
#pragma once

#include "core/tensor.h"

#include <vector>

namespace tandem::autograd {

/// The elements of x, in row-major order of its shape, as another shape; one size may be -1. A view where strides allow
/// it, else a copy. Throws Error where the numbers of elements differ.
Tensor reshape(const Tensor& x, const Shape& shape);

/// [N, ...] -> [N, rest]; images N,C,H,W in PyTorch's order C,H,W. Throws Error for rank 0.
Tensor flatten(const Tensor& x);

/// A view with the dimensions in another order.
Tensor permute(const Tensor& x, const std::vector<int>& order);

/// A view of elements [start, start + length) of `dim`.
Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length);

}  // namespace tandem::autograd
