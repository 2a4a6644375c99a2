// The implementations of flip_horizontal.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/augment/flip_horizontal.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::flip_horizontal) flip_horizontal;
}  // namespace reference

namespace cpu {
/// channels_last on the CPU, any floating dtype.
bool flip_horizontal_supports(const Tensor& x, const Tensor& out);
decltype(kernels::flip_horizontal) flip_horizontal;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::flip_horizontal) flip_horizontal;
}  // namespace cuda

}  // namespace tandem::kernels
