// Norm and scaling of many tensors together, for gradient clipping.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

/// Sum of the squares of all elements of all tensors, in double. Dense floating tensors; each is summed in fixed chunks
/// in the order of its memory, so the result does not depend on the number of threads. On one device; on a GPU, waits
/// for the result; f32, f16 and bf16 there.
double squared_norm(std::span<const Tensor> tensors);
/// The same as a tensor on their device, f64 of rank 0, for which nobody waits; of no tensors on the CPU. `table`:
/// where a GPU's list of the tensors is kept, which must have been given for them before where this is recorded in a
/// WorkGraph.
Tensor squared_norm_there(std::span<const Tensor> tensors, TableCache* table = nullptr);

/// Multiplies all elements of all tensors by `factor`, in place. Dense floating tensors on one device.
void scale_all(std::span<const Out> tensors, double factor);

}  // namespace tandem::kernels
