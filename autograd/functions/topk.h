// The largest elements along one dimension: their places, and differentiable values.
// Example:
//     const Tensor logits = Tensor::from<float>({1, 7, 5, 9, 0, 9}, {2, 3});
//     const std::vector<int> classes = argmax(logits, -1).to_vector<int>();  // {1, 0}
//     const double place = argmax(logits).item();                             // 3: of all six
//     const auto [values, places] = topk(logits, 2);
//     const std::vector<float> best = values.to_vector<float>();  // {7, 5, 9, 9}
//     const std::vector<int> columns = places.to_vector<int>();     // {1, 2, 0, 2}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

// NaN counts as greater than all numbers, as in PyTorch. Of equal elements the one that stands first wins, on every
// device. Floating x of any strides; f64 on the CPU only.

/// The number of the greatest element along `dim`, i64: without `dim`, or with a size of 1 there. It has no gradient.
/// Throws Error where there are no elements along `dim`, and for x of rank 0.
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);

/// The number of the greatest of all elements, counted in row-major order: i64, rank 0.
Tensor argmax(const Tensor& x);

/// What topk() gives; both of the shape of x with size k along the dimension.
struct Topk {
  Tensor values;   ///< of the dtype of x
  Tensor indices;  ///< i64, where they stand along the dimension
};

/// The k greatest elements along `dim`, or the least ones unless `largest`, in the shape of x with k for its size. The
/// best first if `sorted`, else in the order in which they stand in x. The gradient of x is that of the values at their
/// places, 0 elsewhere. Keeps the indices. Throws Error unless 0 <= k <= size of `dim`.
Topk topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true, bool sorted = true);

}  // namespace tandem::autograd
