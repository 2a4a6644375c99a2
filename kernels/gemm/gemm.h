// Matrix product: C = op(A) op(B), or C += op(A) op(B).
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/gemm/gemm_impl.h"

#include <cstdint>

namespace tandem::kernels {

/// How the product is taken.
struct GemmOptions {
  bool transpose_a = false;             ///< A is stored as its transpose
  bool transpose_b = false;             ///< B is stored as its transpose
  bool accumulate = false;              ///< add to what C holds
  GemmImpl impl = GemmImpl::automatic;  ///< which code multiplies
};

/// c[M,N] (+)= op(a)[M,K] op(b)[K,N]. All of one floating dtype and device (f64 on the CPU only); a and b with any
/// strides, c with adjacent columns. On the CPU products are summed in order of K, f32, f16 and bf16 in float (the fast
/// path), f64 as reference::gemm does; on a GPU in float, in an order that depends on the sizes (and by cuBLAS on the
/// GPU) alone. Half types are rounded once.
/// Throws Error where that does not hold, and where `impl` cannot run here.
/// Example:
///     const Tensor a = Tensor::full({2, 3}, 1.0), b = Tensor::full({4, 3}, 2.0), c = Tensor::empty({2, 4});
///     gemm(a, b, {.transpose_b = true}, Out(c));
///     const double first = c.select(0, 0).select(0, 0).item();  // 6
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c);

}  // namespace tandem::kernels
