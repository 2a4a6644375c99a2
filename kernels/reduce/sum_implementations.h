// The implementations of sum.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/reduce/sum.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::sum) sum;
decltype(kernels::mean) mean;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool sum_supports(const Tensor& x);
decltype(kernels::sum) sum;
decltype(kernels::mean) mean;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::sum) sum;
decltype(kernels::mean) mean;
}  // namespace cuda

}  // namespace tandem::kernels
