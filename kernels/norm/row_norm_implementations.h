// The implementations of row_norm.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/norm/row_norm.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::row_norm_forward) row_norm_forward;
decltype(kernels::row_norm_backward) row_norm_backward;
}  // namespace reference

/// f32, f16 and bf16, computed in float, sums of rows in f64. Results do not depend on the number of threads.
namespace cpu {
decltype(kernels::row_norm_forward) row_norm_forward;
decltype(kernels::row_norm_backward) row_norm_backward;
}  // namespace cpu

/// f32, f16 and bf16, computed in float.
namespace cuda {
decltype(kernels::row_norm_forward) row_norm_forward;
decltype(kernels::row_norm_backward) row_norm_backward;
}  // namespace cuda

}  // namespace tandem::kernels
