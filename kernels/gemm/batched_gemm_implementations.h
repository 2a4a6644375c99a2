// The implementations of batched_gemm.h, which its dispatcher chooses from. They take what merge_batches() gives: the
// same leading dimensions in all three, and no size of 0.
#pragma once

#include "tandem/kernels/gemm/batched_gemm.h"

namespace tandem::kernels {

namespace reference {
/// gemm of each batch, in plain loops.
decltype(kernels::batched_gemm) batched_gemm;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool supports_batched_gemm(const Tensor& c);
decltype(kernels::batched_gemm) batched_gemm;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device: small products in one launch, large ones each by gemm.
decltype(kernels::batched_gemm) batched_gemm;
}  // namespace cuda

}  // namespace tandem::kernels
