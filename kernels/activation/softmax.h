// Softmax over the rows of a matrix, and its logarithm.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>

namespace tandem::kernels {

/// What is computed of a row x.
enum class SoftmaxResult : std::uint8_t {
  probabilities,  // p = exp(x - m) / s with m the largest of the row and s the sum of exp(x - m)
  logarithms,     // log p = x - m - log(s)
};

/// dtype of the result for x of this dtype: f64 for f64, else f32.
DType softmax_dtype(DType x_dtype);

/// x: [R, C], floating; y: [R, C] of softmax_dtype; both dense row-major and on one device. As in PyTorch, an element
/// of minus infinity gets the probability 0, and a row that holds NaN, plus infinity or nothing but minus infinity
/// becomes NaN. Throws Error where that does not hold.
void softmax_forward(SoftmaxResult result, const Tensor& x, const Out& y);

/// grad_x from y as the forward made it and grad_y: p (grad_y - sum of p grad_y over the row) for probabilities,
/// grad_y - p (sum of grad_y) for logarithms. y and grad_y: [R, C] of one dtype, f32 or f64; grad_x: [R, C], floating,
/// f64 where they are; all dense row-major.
void softmax_backward(SoftmaxResult result, const Tensor& y, const Tensor& grad_y, const Out& grad_x);

}  // namespace tandem::kernels
