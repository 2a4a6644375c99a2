// A matrix in memory, as the products of the CPU read it.
#pragma once

#include <cstdint>

namespace tandem::kernels::cpu {

/// A matrix of T (float, Half or BFloat16) in memory: element (i, j) is data[i * row_stride + j * column_stride].
template <typename T>
struct MatrixView {
  const T* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

}  // namespace tandem::kernels::cpu
