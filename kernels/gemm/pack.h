// Columns of B side by side, as the register tile reads them.
#pragma once

#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/gemm/matrix_view.h"
#include "tandem/kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::cpu {

/// Rows of B that are packed at a time. Products on the CPU are summed up in blocks of so many, which are then added.
constexpr std::int64_t kBlockK = 256;

/// to[k][j] = b(k, j) for one panel, filled up with zeros to tiling::kPanel columns.
template <typename T>
void pack_columns(MatrixView<T> b, std::int64_t columns, std::int64_t depth, float* to) {
  if (columns < tiling::kPanel) std::fill(to, to + depth * tiling::kPanel, 0.0f);
  if (b.column_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) widen(b.data + k * b.row_stride, columns, to + k * tiling::kPanel);
    return;
  }
  alignas(64) float column[kBlockK];
  for (std::int64_t j = 0; j < columns; ++j) {
    widen(b.data + j * b.column_stride, b.row_stride, depth, column);
    for (std::int64_t k = 0; k < depth; ++k) to[k * tiling::kPanel + j] = column[k];
  }
}

}  // namespace tandem::kernels::cpu
