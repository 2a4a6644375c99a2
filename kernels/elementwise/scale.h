// Element-wise product with a number: out = factor * a.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out = factor * a, the factor rounded to the compute type (f32 for the half types). One shape, floating dtype and
/// device; `a` of any strides, `out` dense; they may be the same elements. Throws Error where that does not hold.
void scale(const Tensor& a, double factor, const Tensor& out);

namespace reference {
void scale(const Tensor& a, double factor, const Tensor& out);
}

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool scale_supports(const Tensor& out);
void scale(const Tensor& a, double factor, const Tensor& out);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void scale(const Tensor& a, double factor, const Tensor& out);
}  // namespace cuda

}  // namespace tandem::kernels
