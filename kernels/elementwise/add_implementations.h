// The implementations of add.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/add.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::add) add;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool add_supports(const Tensor& out);
decltype(kernels::add) add;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::add) add;
}  // namespace cuda

}  // namespace tandem::kernels
