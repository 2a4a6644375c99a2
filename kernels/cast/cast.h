// Copies between dtypes.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// Writes the elements of `source` to `destination` (same shape and device, any dtypes and strides). Towards floating
/// types rounded to nearest even, once; towards integers truncated and saturated, NaN becoming 0; i64 and i32 saturate
/// towards narrower integers. Throws Error on other shapes or devices, and for tensors that share memory.
void cast(const Tensor& source, const Out& destination);

}  // namespace tandem::kernels
