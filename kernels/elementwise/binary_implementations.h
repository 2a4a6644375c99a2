// The implementations of binary.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/binary.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::binary_forward) binary_forward;
decltype(kernels::binary_backward) binary_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool binary_supports(const Tensor& out);
decltype(kernels::binary_forward) binary_forward;
decltype(kernels::binary_backward) binary_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::binary_forward) binary_forward;
decltype(kernels::binary_backward) binary_backward;
}  // namespace cuda

}  // namespace tandem::kernels
