// gemm: checks, and the choice between the fast and the reference path.
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/gemm_implementations.h"

#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/gemm/product_work.h"

namespace tandem::kernels {

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  require(a.rank() == 2 && b.rank() == 2 && c.rank() == 2, "gemm: needs matrices, got a {}, b {}, c {}", describe(a),
          describe(b), describe(c));
  const std::int64_t m = a.size(options.transpose_a ? 1 : 0), k = a.size(options.transpose_a ? 0 : 1);
  const std::int64_t n = b.size(options.transpose_b ? 0 : 1);
  require(b.size(options.transpose_b ? 1 : 0) == k && c.size(0) == m && c.size(1) == n,
          "gemm: shapes do not fit: a {}{}, b {}{}, c {}", describe(a), options.transpose_a ? " transposed" : "",
          describe(b), options.transpose_b ? " transposed" : "", describe(c));
  require(a.dtype() == b.dtype() && a.dtype() == c.dtype(), "gemm: dtypes differ: a {}, b {}, c {}", describe(a),
          describe(b), describe(c));
  require(n <= 1 || c.stride(1) == 1, "gemm: the columns of c {} must be adjacent; make it contiguous()", describe(c));
  require_one_device("gemm", c, a, b);
  note_products(1, m, n, k, c.dtype());
  require_possible("gemm", options.impl, c.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{"gemm", c}) return cuda::gemm(a, b, options, c);
  if (cpu::supports_gemm(c)) return cpu::gemm(a, b, options, c);
  reference::gemm(a, b, options, c);
}

}  // namespace tandem::kernels
