// The implementations of scale.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/scale.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::scale) scale;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool scale_supports(const Tensor& out);
decltype(kernels::scale) scale;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::scale) scale;
}  // namespace cuda

}  // namespace tandem::kernels
