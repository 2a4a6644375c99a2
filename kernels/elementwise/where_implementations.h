// The implementations of where.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/where.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::where) where;
decltype(kernels::where_backward) where_backward;
}  // namespace reference

namespace cpu {
/// Every dtype on the CPU; gradients of the floating ones.
decltype(kernels::where) where;
decltype(kernels::where_backward) where_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16, bf16 and integers on a CUDA device; gradients of the floating ones.
decltype(kernels::where) where;
decltype(kernels::where_backward) where_backward;
}  // namespace cuda

}  // namespace tandem::kernels
