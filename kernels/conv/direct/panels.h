// Products of rows (patches or gradients) with packed weight panels.
#pragma once

#include "tandem/kernels/gemm/tile.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::direct {

using tiling::kPanel;

constexpr std::int64_t panels_of(std::int64_t columns) { return (columns + kPanel - 1) / kPanel; }

/// Rows of the left operand: row i has its value k at data[i * row_step + k / segment * segment_step + k % segment].
struct RowOperand {
  const float* data;
  std::int64_t row_step;
  std::int64_t segments, segment, segment_step;

  std::int64_t depth() const { return segments * segment; }
};

inline RowOperand dense_rows(const float* data, std::int64_t row_step, std::int64_t depth) {
  return {data, row_step, 1, depth, 0};
}

namespace detail {
template <int kRows>
struct RowTile {
  static void run(const RowOperand& a, const float* b, float* c, std::int64_t c_row) {
    tiling::multiply_tile<kRows, tiling::kPanelVectors>({.a = a.data,
                                                         .a_row = a.row_step,
                                                         .a_k = 1,
                                                         .a_segment = a.segment_step,
                                                         .segments = a.segments,
                                                         .segment = a.segment,
                                                         .b = b,
                                                         .b_k = kPanel,
                                                         .b_vector = simd::kLanes,
                                                         .c = c,
                                                         .c_row = c_row,
                                                         .c_vector = simd::kLanes,
                                                         .accumulate = false});
  }
};
using RowFunction = void (*)(const RowOperand&, const float*, float*, std::int64_t);
}  // namespace detail

/// c[i][j] = sum over k of a(i, k) * panels[j / kPanel][k][j % kPanel], for i < rows, j < columns.
inline void multiply_rows(const RowOperand& a, std::int64_t rows, const float* panels, std::int64_t columns, float* c,
                          std::int64_t c_row) {
  alignas(64) float narrow[tiling::kTileRows * kPanel];
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const float* b = panels + column * a.depth();
    const std::int64_t width = std::min<std::int64_t>(kPanel, columns - column);
    tiling::for_each_row_tile(rows, [&](std::int64_t first, std::int64_t count) {
      const auto tile =
          tiling::kKernelByRows<detail::RowFunction, detail::RowTile>[static_cast<std::size_t>(count - 1)];
      RowOperand some = a;
      some.data += first * a.row_step;
      float* to = c + first * c_row + column;
      if (width == kPanel) return tile(some, b, to, c_row);
      tile(some, b, narrow, kPanel);
      for (std::int64_t i = 0; i < count; ++i) std::copy_n(narrow + i * kPanel, width, to + i * c_row);
    });
  }
}

}  // namespace tandem::kernels::direct
