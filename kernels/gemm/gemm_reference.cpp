// gemm in plain loops: the oracle, and the path of f64.
#include "tandem/kernels/gemm/gemm_implementations.h"

namespace tandem::kernels::reference {

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  const std::int64_t m = c.size(0), n = c.size(1), k = a.size(options.transpose_a ? 0 : 1);
  const Tensor left = options.transpose_a ? a.transpose(0, 1) : a;
  const Tensor right = options.transpose_b ? b.transpose(0, 1) : b;
  dispatch_floating(c.dtype(), "gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* pa = left.data<T>();
    const T* pb = right.data<T>();
    T* pc = c.data<T>();
    const std::int64_t a_row = left.stride(0), a_column = left.stride(1);
    const std::int64_t b_row = right.stride(0), b_column = right.stride(1);
    const std::int64_t c_row = c.stride(0), c_column = c.stride(1);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        T& out = pc[i * c_row + j * c_column];
        double sum = options.accumulate ? static_cast<double>(out) : 0.0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += static_cast<double>(pa[i * a_row + p * a_column]) * static_cast<double>(pb[p * b_row + j * b_column]);
        out = static_cast<T>(static_cast<compute_t<T>>(sum));
      }
  });
}

}  // namespace tandem::kernels::reference
