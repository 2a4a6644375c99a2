// Whether many tensors hold finite numbers only: what loss scaling asks of the gradients.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

/// i32, rank 0: 1 if any element of any tensor is infinite or NaN, else 0, as for no elements. Dense floating tensors
/// on one device, each read once; the answer is there, too, and nobody waits for it. f32, f16 and bf16 on a GPU,
/// which keeps its table of tensors in `table` if that is given.
Tensor any_non_finite(std::span<const Tensor> tensors, TableCache* table = nullptr);

/// Whether any_non_finite() finds nothing. On a GPU, waits for the answer.
bool all_finite(std::span<const Tensor> tensors);

}  // namespace tandem::kernels
