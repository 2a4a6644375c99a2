// Norm and scaling of many tensors together, for gradient clipping.
#pragma once

#include "core/tensor.h"

#include <span>

namespace tandem::kernels {

/// Sum of the squares of all elements of all tensors, in double. Dense floating tensors; each is summed in fixed chunks
/// in the order of its memory, so the result does not depend on the number of threads.
double squared_norm(std::span<const Tensor> tensors);

/// Multiplies all elements of all tensors by `factor`, in place. Dense floating tensors.
void scale_all(std::span<const Tensor> tensors, double factor);

}  // namespace tandem::kernels
