// Norm and scaling of many tensors together, for gradient clipping.
#pragma once

#include "tandem/core/out.h"

#include <span>

namespace tandem::kernels {

/// Sum of the squares of all elements of all tensors, in double. Dense floating tensors; each is summed in fixed chunks
/// in the order of its memory, so the result does not depend on the number of threads. On one device; on a GPU, waits
/// for the result; f32, f16 and bf16 there.
double squared_norm(std::span<const Tensor> tensors);

/// Multiplies all elements of all tensors by `factor`, in place. Dense floating tensors on one device.
void scale_all(std::span<const Out> tensors, double factor);

}  // namespace tandem::kernels
