// Copies between dtypes.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// Writes the elements of `source` to `destination` (same shape and device, any dtypes and strides). Towards floating
/// types rounded to nearest even, once; towards integers truncated and saturated, NaN becoming 0; i64 and i32 saturate
/// towards narrower integers. Throws Error on other shapes or devices, and for tensors that share memory.
void cast(const Tensor& source, const Tensor& destination);

namespace reference {
void cast(const Tensor& source, const Tensor& destination);
}

namespace cpu {
/// Dense tensors of equal strides on the CPU; any dtypes, f32 from and to the others vectorised.
bool cast_supports(const Tensor& source, const Tensor& destination);
void cast(const Tensor& source, const Tensor& destination);
}  // namespace cpu

namespace cuda {
/// Any dtypes and strides, on a CUDA device.
void cast(const Tensor& source, const Tensor& destination);
}  // namespace cuda

}  // namespace tandem::kernels
