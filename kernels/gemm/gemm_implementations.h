// The implementations of gemm.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/matrix_view.h"

namespace tandem::kernels {

namespace reference {
/// Plain loops, sums in double, rounded once.
decltype(kernels::gemm) gemm;
}  // namespace reference

namespace cpu {

/// The fast product, in float; c's row i starts at c + i * c_row_stride. Blocks of A and B are packed, so strides
/// matter little. The result does not depend on the number of threads. A and B are of one type, or A of float.
template <typename A, typename B>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<A> a, MatrixView<B> b, bool accumulate, float* c,
          std::int64_t c_row_stride);

/// f32, f16 and bf16.
bool supports_gemm(const Tensor& c);
decltype(kernels::gemm) gemm;

}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16, accumulated in float: by cuBLAS or by our tiles.
decltype(kernels::gemm) gemm;
/// Whether an automatic choice takes cuBLAS for a product of these sizes.
bool goes_to_library(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k);
namespace tile {
decltype(kernels::gemm) gemm;
}
}  // namespace cuda

}  // namespace tandem::kernels
