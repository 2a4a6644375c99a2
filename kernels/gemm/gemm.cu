// gemm on the GPU: tiles in shared memory, 4 x 4 sums per thread.
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  const Tensor left = options.transpose_a ? a.transpose(0, 1) : a;   // [M, K]
  const Tensor right = options.transpose_b ? b : b.transpose(0, 1);  // [N, K]
  const std::int64_t depth = left.size(1);
  device::dispatch(c.dtype(), "gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (c.numel() == 0) return;
    const Matrix<T> rows{left.data<T>(), c.size(0), left.stride(0), left.stride(1)};
    const Matrix<T> columns{right.data<T>(), c.size(1), right.stride(0), right.stride(1)};
    const MatrixResult<T> result{.data = c.data<T>(),
                                 .rows = c.size(0),
                                 .columns = c.size(1),
                                 .row_stride = c.stride(0),
                                 .accumulate = options.accumulate};
    multiply(rows, columns, result, depth, rows.takes_vectors(depth) && columns.takes_vectors(depth), c);
  });
}

}  // namespace tandem::kernels::cuda::tile
