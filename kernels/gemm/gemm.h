// Matrix product: C = op(A) op(B), or C += op(A) op(B).
#pragma once

#include "core/tensor.h"
#include "kernels/gemm/gemm_impl.h"

#include <cstdint>

namespace tandem::kernels {

struct GemmOptions {
  bool transpose_a = false;  // A is stored as its transpose
  bool transpose_b = false;
  bool accumulate = false;  // add to what C holds
  GemmImpl impl = GemmImpl::automatic;
};

/// c[M,N] (+)= op(a)[M,K] op(b)[K,N]. All of one floating dtype and device (f64 on the CPU only); a and b with any
/// strides, c with adjacent columns. On the CPU products are summed in order of K, f32, f16 and bf16 in float (the fast
/// path), f64 as reference::gemm does; on a GPU in float, in an order that depends on the sizes (and by cuBLAS on the
/// GPU) alone. Half types are rounded once.
/// Throws Error where that does not hold, and where `impl` cannot run here.
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c);

namespace reference {
/// Plain loops, sums in double, rounded once.
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c);
}  // namespace reference

namespace cpu {

/// A matrix of T (float, Half or BFloat16) in memory: element (i, j) is data[i * row_stride + j * column_stride].
template <typename T>
struct MatrixView {
  const T* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// The fast product, in float; c's row i starts at c + i * c_row_stride. Blocks of A and B are packed, so strides
/// matter little. The result does not depend on the number of threads. A and B are of one type, or A of float.
template <typename A, typename B>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<A> a, MatrixView<B> b, bool accumulate, float* c,
          std::int64_t c_row_stride);

/// f32, f16 and bf16.
bool supports_gemm(const Tensor& c);
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c);

}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16, accumulated in float: by cuBLAS or by our tiles.
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c);
namespace tile {
void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c);
}
}  // namespace cuda
}  // namespace tandem::kernels
