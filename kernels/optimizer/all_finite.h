// Whether many tensors hold finite numbers only: what loss scaling asks of the gradients.
#pragma once

#include "tandem/core/tensor.h"

#include <span>

namespace tandem::kernels {

/// False if any element of any tensor is infinite or NaN; true for no elements. Dense floating tensors on one device,
/// each read once. On a GPU, waits for the answer; f32, f16 and bf16 there.
bool all_finite(std::span<const Tensor> tensors);

}  // namespace tandem::kernels
