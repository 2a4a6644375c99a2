// The implementations of cast.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/cast/cast.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::cast) cast;
}  // namespace reference

namespace cpu {
/// Dense tensors of equal strides on the CPU; any dtypes, f32 from and to the others vectorised.
bool cast_supports(const Tensor& source, const Tensor& destination);
decltype(kernels::cast) cast;
}  // namespace cpu

namespace cuda {
/// Any dtypes and strides, on a CUDA device.
decltype(kernels::cast) cast;
}  // namespace cuda

}  // namespace tandem::kernels
