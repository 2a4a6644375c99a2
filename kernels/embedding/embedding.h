// Looking up rows of a matrix by their numbers.
#pragma once

#include "tandem/core/out.h"

#include <string_view>

namespace tandem::kernels {

/// y[n] = weight[indices[n]]. indices: i64[N], any stride, each in [0, V); weight: [V, D], floating; y: [N, D] of its
/// dtype; both dense row-major. Throws Error where that does not hold. An index outside of the rows is an Error
/// (require_indices) on the CPU. On a GPU nobody waits for the check: such an index gives a row of NaN.
void embedding_forward(const Tensor& indices, const Tensor& weight, const Out& y);

/// grad_weight[v] = the sum of grad_y[n] over all n with indices[n] = v, 0 where there is none; overwrites grad_weight
/// ([V, D]). grad_y: [N, D] of its dtype; both dense row-major. Each sum is in f32 (f64 of f64), in the order of n: the
/// same bits every time, on any number of threads. On a GPU, where each distinct index is looked for among all, the
/// time for that grows as N squared; indices outside of the rows add to none.
void embedding_backward(const Tensor& indices, const Tensor& grad_y, const Out& grad_weight);

/// Throws Error that begins with `op` and names the first index that is not in [0, rows). indices: i64[N], on any
/// device; waits for it.
void require_indices(const Tensor& indices, std::int64_t rows, std::string_view op = "embedding");

}  // namespace tandem::kernels
