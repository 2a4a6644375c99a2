// batched_gemm in plain loops: the oracle, and the path of f64.
#include "tandem/kernels/gemm/batched_gemm_implementations.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm_implementations.h"

namespace tandem::kernels::reference {

void batched_gemm(const Tensor& a, const Tensor& b, const Out& c) {
  for (std::int64_t i = 0; i < matrix_count(c); ++i) gemm(matrix_at(a, i), matrix_at(b, i), {}, Out(matrix_at(c, i)));
}

}  // namespace tandem::kernels::reference
