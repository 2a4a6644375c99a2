// Normalisation of rows of numbers that follow each other: what layer normalisation (Ba, Kiros, Hinton: "Layer
// normalization", 2016) and group normalisation (Wu, He: "Group normalization", 2018) have in common.
//   xhat = (x - mean of the row) / sqrt(biased variance of the row + eps),  y = xhat * weight + bias
#pragma once

#include "tandem/core/out.h"

#include <string_view>

namespace tandem::kernels {

/// Which weight and bias belong to which element of a matrix [R, C]: number (r mod groups) (C / repeats) + c / repeats,
/// of `groups` C / repeats in all. Layer normalisation: groups = repeats = 1, a weight per column. Group normalisation
/// of N images of S pixels: rows are N times `groups`, and repeats = S.
struct RowNormOptions {
  std::int64_t groups = 1, repeats = 1;
  double eps = 1e-5;
};

/// dtype of saved statistics for x of this dtype: f64 for f64, else f32.
DType row_norm_statistics_dtype(DType x_dtype);

/// x, y: [R, C] of one floating dtype, dense row-major. weight, bias: [P] of any floating dtype, as RowNormOptions
/// numbers them; undefined: 1 and 0. mean, inverse_std: [R] of row_norm_statistics_dtype, dense; they get those of the
/// rows, for backward. Sums in f32 or wider; the variance is the mean of squared deviations from the mean (two passes).
/// NaN and infinities make their row NaN. Throws Error that begins with `op` where that does not hold.
void row_norm_forward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const RowNormOptions& options, const Out& y, const Out& mean, const Out& inverse_std);

/// Overwrites those of grad_x (as x), grad_weight and grad_bias ([P], any floating dtype) that are defined. grad_y: as
/// x. Sums of grad_weight and grad_bias are of parts whose size depends on that of the matrix alone, added in order.
void row_norm_backward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_std, const RowNormOptions& options, const Tensor& grad_y,
                       const Out& grad_x, const Out& grad_weight, const Out& grad_bias);

}  // namespace tandem::kernels
