// The implementations of softmax_cross_entropy.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/loss/softmax_cross_entropy.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::softmax_cross_entropy_forward) softmax_cross_entropy_forward;
decltype(kernels::softmax_cross_entropy_backward) softmax_cross_entropy_backward;
}  // namespace reference

/// f32, f16 and bf16 logits, dense row-major: exponentials in f32, probabilities f32, rows shared out over threads.
namespace cpu {
bool supports_softmax_cross_entropy(const Tensor& logits);
decltype(kernels::softmax_cross_entropy_forward) softmax_cross_entropy_forward;
decltype(kernels::softmax_cross_entropy_backward) softmax_cross_entropy_backward;
}  // namespace cpu

/// f32, f16 and bf16 logits; exponentials and sums of a row in f32, probabilities f32.
namespace cuda {
decltype(kernels::softmax_cross_entropy_forward) softmax_cross_entropy_forward;
decltype(kernels::softmax_cross_entropy_backward) softmax_cross_entropy_backward;
}  // namespace cuda

}  // namespace tandem::kernels
