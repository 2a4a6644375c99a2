// Differentiable changes of shape.
// Example:
//     const Tensor x = Tensor::zeros({8, 64, 4, 2});
//     const Tensor rows = flatten(x);                // [8, 512]
//     const Tensor pairs = reshape(rows, {-1, 2});   // [2048, 2]
//     const Tensor nhwc = permute(x, {0, 2, 3, 1});  // [8, 4, 2, 64]
//     const Tensor odd = narrow(x, 2, 1, 2, 2);      // [8, 64, 2, 2]: rows 1 and 3
#pragma once

#include "tandem/core/tensor.h"

#include <vector>

namespace tandem::autograd {

/// The elements of x, in row-major order of its shape, as another shape; one size may be -1. A view where x is dense in
/// that order, else a copy. Throws Error where the numbers of elements differ.
Tensor reshape(const Tensor& x, const Shape& shape);

/// [N, ...] -> [N, rest]; images N,C,H,W in PyTorch's order C,H,W. Throws Error for rank 0.
Tensor flatten(const Tensor& x);

/// A view with the dimensions in another order.
Tensor permute(const Tensor& x, const std::vector<int>& order);

/// A view with dimensions a and b in each other's place.
Tensor transpose(const Tensor& x, int a, int b);

/// A view of `length` elements of `dim`: start, start + step, start + 2 step and so on.
Tensor narrow(const Tensor& x, int dim, std::int64_t start, std::int64_t length, std::int64_t step = 1);

/// A view of the `index`-th slice of `dim`, which disappears.
Tensor select(const Tensor& x, int dim, std::int64_t index);

/// A view without `dim`, whose size must be 1.
Tensor squeeze(const Tensor& x, int dim);
/// A view with a new dimension of size 1, which becomes `dim`.
Tensor unsqueeze(const Tensor& x, int dim);

/// A view in which dimensions of size 1, and new ones in front, are repeated to give `shape`. The gradient is summed up
/// over them.
Tensor expand(const Tensor& x, const Shape& shape);

}  // namespace tandem::autograd
