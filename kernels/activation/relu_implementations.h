// The implementations of relu.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/activation/relu.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::relu_forward) relu_forward;
decltype(kernels::relu_backward) relu_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool relu_supports(const Tensor& out);
decltype(kernels::relu_forward) relu_forward;
decltype(kernels::relu_backward) relu_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::relu_forward) relu_forward;
decltype(kernels::relu_backward) relu_backward;
}  // namespace cuda

}  // namespace tandem::kernels
