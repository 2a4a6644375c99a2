// A matrix product in the terms of BLAS, which stores matrices column by column.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/gemm/gemm.h"

#include <cstdint>
#include <optional>

namespace tandem::kernels {

/// c[m,n] (+)= op(a)[m,k] op(b)[k,n], where op transposes as asked. By columns: element (i, j) of what is stored is at
/// i + j * the leading dimension. All sizes fit into int.
struct ColumnMajorProduct {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  const void* a;
  std::int64_t a_leading;
  const void* b;
  std::int64_t b_leading;
  void* c;
  std::int64_t c_leading;
  bool accumulate;
  DType dtype;
};

/// The product of gemm.h, whose shapes have been checked: by columns it is c^T (+)= op(b)^T op(a)^T. Nothing where BLAS
/// cannot: it takes f32, f16 and bf16, and in each of `a` and `b` either the elements of rows or those of columns must
/// be adjacent, without overlap.
std::optional<ColumnMajorProduct> by_columns(const Tensor& a, const Tensor& b, const GemmOptions& options,
                                             const Out& c);

}  // namespace tandem::kernels
