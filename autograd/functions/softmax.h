// Differentiable softmax, and its logarithm.
// Example:
//     const Tensor x = Tensor::from<float>({0, 0, 9, 0}, {2, 2});
//     const std::vector<float> p = softmax(x, 1).to_vector<float>();  // {0.5, 0.5, 0.999877, 0.000123395}
//     const Tensor logs = log_softmax(x, 1);
//     const std::vector<float> log_p = logs.to_vector<float>();  // {-0.693147, -0.693147, -0.000123402, -9.00012}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

// Along any dimension (negative ones count from the end); x floating, of any strides. The result is f32 for halves
// (OpKind::exponential). Where the elements of the dimension do not follow each other in memory (as channels of
// channels_last images do), x is copied so that they do, and the result is a view with these strides. -inf gets the
// probability 0; rows that hold NaN or inf, or nothing but -inf, become NaN, as in PyTorch. Keeps the output.

/// exp(x) over the sum of exp along the dimension.
Tensor softmax(const Tensor& x, int dim);

/// The logarithm of that, without its overflows and rounding to 0.
Tensor log_softmax(const Tensor& x, int dim);

}  // namespace tandem::autograd
