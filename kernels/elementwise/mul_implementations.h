// The implementations of mul.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/mul.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::mul) mul;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool mul_supports(const Tensor& out);
decltype(kernels::mul) mul;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::mul) mul;
}  // namespace cuda

}  // namespace tandem::kernels
