// Matrix products of a batch: c[i] = a[i] b[i].
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// c[..., M, N] = a[..., M, K] b[..., K, N] for every index of the leading dimensions of c, to which those of a and b
/// expand (Tensor::expand). a and b of any strides: a transposed view is read as it lies. c dense and row-major. All of
/// one floating dtype and device (f64 on the CPU only). Each element is summed up in order of K: in float for f32, f16
/// and bf16, on the CPU in the order of gemm.h; in f64 for f64. Half types are rounded once. Matrices of a that follow
/// each other and share one matrix of b are multiplied as one. Throws Error where that does not hold.
/// Example:
///     const Tensor a = Tensor::full({8, 2, 3}, 1.0), b = Tensor::full({3, 4}, 2.0), c = Tensor::empty({8, 2, 4});
///     batched_gemm(a, b, Out(c));
///     const double first = c.select(0, 0).select(0, 0).select(0, 0).item();  // 6
void batched_gemm(const Tensor& a, const Tensor& b, const Out& c);

}  // namespace tandem::kernels
