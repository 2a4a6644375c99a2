// The implementations of gelu.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/activation/gelu.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::gelu_forward) gelu_forward;
decltype(kernels::gelu_backward) gelu_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool gelu_supports(const Tensor& out);
decltype(kernels::gelu_forward) gelu_forward;
decltype(kernels::gelu_backward) gelu_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::gelu_forward) gelu_forward;
decltype(kernels::gelu_backward) gelu_backward;
}  // namespace cuda

}  // namespace tandem::kernels
