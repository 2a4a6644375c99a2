// The implementations of softmax.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/activation/softmax.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::softmax_forward) softmax_forward;
decltype(kernels::softmax_backward) softmax_backward;
}  // namespace reference

/// f32, f16 and bf16 x: exponentials in f32, sums of a row in f64, rows shared out over threads.
namespace cpu {
decltype(kernels::softmax_forward) softmax_forward;
decltype(kernels::softmax_backward) softmax_backward;
}  // namespace cpu

/// f32, f16 and bf16 x; exponentials and sums of a row in f32.
namespace cuda {
decltype(kernels::softmax_forward) softmax_forward;
decltype(kernels::softmax_backward) softmax_backward;
}  // namespace cuda

}  // namespace tandem::kernels
