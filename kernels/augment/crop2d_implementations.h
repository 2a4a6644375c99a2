// The implementations of crop2d.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/augment/crop2d.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::crop2d) crop2d;
decltype(kernels::crop2d_backward) crop2d_backward;
}  // namespace reference

namespace cpu {
/// Any layout on the CPU: the copy of a view, in runs as long as the layouts allow.
bool crop2d_supports(const Tensor& out);
decltype(kernels::crop2d) crop2d;
decltype(kernels::crop2d_backward) crop2d_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::crop2d) crop2d;
decltype(kernels::crop2d_backward) crop2d_backward;
}  // namespace cuda

}  // namespace tandem::kernels
