// Element-wise sum: out = a + b.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out = a + b. All of one shape, floating dtype and device; `a` and `b` of any strides (0 for broadcast dimensions:
/// see Tensor::expand), `out` dense. `out` may be the same elements as `a` or `b`. Throws Error where that does not
/// hold.
void add(const Tensor& a, const Tensor& b, const Tensor& out);

namespace reference {
void add(const Tensor& a, const Tensor& b, const Tensor& out);
}

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool add_supports(const Tensor& out);
void add(const Tensor& a, const Tensor& b, const Tensor& out);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void add(const Tensor& a, const Tensor& b, const Tensor& out);
}  // namespace cuda

}  // namespace tandem::kernels
