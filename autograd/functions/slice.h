// Differentiable parts of a tensor along one dimension.
// Example:
//     const Tensor x = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {6});
//     const std::vector<float> inner = slice(x, 0, 1, -1).to_vector<float>();    // {1, 2, 3, 4}
//     const std::vector<float> even = slice(x, 0, 0, 6, 2).to_vector<float>();   // {0, 2, 4}
//     const std::vector<float> last = slice(x, 0, -2).to_vector<float>();        // {4, 5}
//     const std::vector<Tensor> parts = split(x, 4);                             // [4] and [2]
//     const std::vector<Tensor> named = split(x, std::vector<std::int64_t>{1, 2, 3});  // [1], [2] and [3]
#pragma once

#include "tandem/core/tensor.h"

#include <limits>
#include <vector>

namespace tandem::autograd {

/// An `end` beyond every size: up to the last element.
inline constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

/// x[start:end:step] along `dim`, as in NumPy and PyTorch: negative numbers count from the end, and what lies outside
/// is cut off, so that a slice may be empty. A view: it shares the elements of x. Its gradient is that of x at the
/// places of the slice, 0 elsewhere; a tensor that is sliced several times adds them up. Any dtype and strides. Throws
/// Error unless step > 0.
Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t end = kEnd, std::int64_t step = 1);

/// Consecutive parts of x along `dim`, `size` elements each, the last one what is left (torch.split). A `dim` of no
/// elements is one empty part. Views, like slice(), of one recorded operation: backward writes their gradients beside
/// each other, and 0 for parts that have none. Throws Error unless size > 0.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, int dim = 0);

/// The same with parts of these sizes, 0 or more. Throws Error unless they add up to that of `dim`.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int dim = 0);

}  // namespace tandem::autograd
