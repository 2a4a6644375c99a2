// The implementations of unary.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/unary.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::unary_forward) unary_forward;
decltype(kernels::unary_backward) unary_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool unary_supports(const Tensor& out);
decltype(kernels::unary_forward) unary_forward;
decltype(kernels::unary_backward) unary_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::unary_forward) unary_forward;
decltype(kernels::unary_backward) unary_backward;
}  // namespace cuda

}  // namespace tandem::kernels
