// The implementations of topk.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/reduce/topk.h"

namespace tandem::kernels {

namespace reference {
/// All floating dtypes: rows are sorted by comparisons.
decltype(kernels::topk) topk;
decltype(kernels::topk_backward) topk_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool topk_supports(const Tensor& x);
decltype(kernels::topk) topk;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::topk) topk;
decltype(kernels::topk_backward) topk_backward;
}  // namespace cuda

}  // namespace tandem::kernels
