// A BLAS of plain loops in host memory, by columns.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/gemm/cublas/column_major.h"

namespace tandem::test {

inline void host_blas(const kernels::ColumnMajorProduct& p) {
  dispatch_floating(p.dtype, "host_blas", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto element = [](const void* matrix, bool transpose, std::int64_t leading, std::int64_t i, std::int64_t j) {
      return static_cast<double>(static_cast<const T*>(matrix)[transpose ? j + i * leading : i + j * leading]);
    };
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t i = 0; i < p.m; ++i) {
        T& result = static_cast<T*>(p.c)[i + j * p.c_leading];
        double sum = p.accumulate ? static_cast<double>(result) : 0.0;
        for (std::int64_t l = 0; l < p.k; ++l)
          sum += element(p.a, p.transpose_a, p.a_leading, i, l) * element(p.b, p.transpose_b, p.b_leading, l, j);
        result = static_cast<T>(static_cast<compute_t<T>>(sum));
      }
  });
}

}  // namespace tandem::test
