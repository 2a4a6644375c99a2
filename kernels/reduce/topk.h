// The largest or smallest elements of each row.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

struct TopkOptions {
  bool largest = true;  // else the smallest
  /// True: the best first. False: in the order in which they stand in the row.
  bool sorted = true;
};

/// The k best elements of each row of x [R, N]: their numbers in the row to `indices` [R, k] (i64), and the elements,
/// bit for bit, to `values` [R, k], which may be left out. NaN counts as greater than all other numbers, as in PyTorch;
/// of equal elements (-0 and 0, any two NaN) the one that stands first is the better one. So the result is the same on
/// all devices. x dense and row-major, of a floating dtype (f64 on the CPU only); outputs likewise; all on one device;
/// k <= N < 2^32. Throws Error where that does not hold.
/// Example:
///     const Tensor x = Tensor::from<float>({1, 7, 7, 2}, {1, 4}), best = Tensor::empty({1, 2}, {.dtype = DType::i64});
///     topk(x, {}, {}, Out(best));
///     const std::vector<int> places = best.to_vector<int>();  // {1, 2}
void topk(const Tensor& x, const TopkOptions& options, const Out& values, const Out& indices);

/// The gradient of x: grad_x[r, indices[r, j]] = grad_values[r, j], and 0 elsewhere. grad_values [R, k] and indices
/// [R, k] as topk() gives them, grad_x [R, N], all dense and row-major.
void topk_backward(const Tensor& grad_values, const Tensor& indices, const Out& grad_x);

}  // namespace tandem::kernels
