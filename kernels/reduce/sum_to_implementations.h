// The implementations of sum_to.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/reduce/sum_to.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::sum_to) sum_to;
}  // namespace reference

namespace cpu {
/// All dtypes but f64 on the CPU.
bool sum_to_supports(const Tensor& x);
decltype(kernels::sum_to) sum_to;
}  // namespace cpu

namespace cuda {
/// All dtypes but f64 on a CUDA device.
decltype(kernels::sum_to) sum_to;
}  // namespace cuda

}  // namespace tandem::kernels
