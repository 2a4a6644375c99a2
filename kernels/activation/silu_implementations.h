// The implementations of silu.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/activation/silu.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::silu_forward) silu_forward;
decltype(kernels::silu_backward) silu_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool silu_supports(const Tensor& out);
decltype(kernels::silu_forward) silu_forward;
decltype(kernels::silu_backward) silu_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::silu_forward) silu_forward;
decltype(kernels::silu_backward) silu_backward;
}  // namespace cuda

}  // namespace tandem::kernels
