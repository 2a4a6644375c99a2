// Products of rows (patches or gradients) with packed weight panels.
#pragma once

#include "kernels/gemm/tile.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::direct {

using tiling::kPanel;

constexpr std::int64_t panels_of(std::int64_t columns) { return (columns + kPanel - 1) / kPanel; }

namespace detail {
template <int kRows>
struct RowTile {
  static void run(const float* a, std::int64_t a_row, std::int64_t depth, const float* b, float* c,
                  std::int64_t c_row) {
    tiling::multiply_tile<kRows, tiling::kPanelVectors>({.a = a,
                                                         .a_row = a_row,
                                                         .a_k = 1,
                                                         .a_segment = 0,
                                                         .segments = 1,
                                                         .segment = depth,
                                                         .b = b,
                                                         .b_k = kPanel,
                                                         .b_vector = simd::kLanes,
                                                         .c = c,
                                                         .c_row = c_row,
                                                         .c_vector = simd::kLanes,
                                                         .accumulate = false});
  }
};
using RowFunction = void (*)(const float*, std::int64_t, std::int64_t, const float*, float*, std::int64_t);
}  // namespace detail

/// c[i][j] = sum over k < depth of a[i * a_row + k] * panels[j / kPanel][k][j % kPanel], for i < rows, j < columns.
inline void multiply_rows(const float* a, std::int64_t a_row, std::int64_t rows, std::int64_t depth,
                          const float* panels, std::int64_t columns, float* c, std::int64_t c_row) {
  alignas(64) float narrow[tiling::kTileRows * kPanel];
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const float* b = panels + column * depth;
    const std::int64_t width = std::min<std::int64_t>(kPanel, columns - column);
    tiling::for_each_row_tile(rows, [&](std::int64_t first, std::int64_t count) {
      const auto tile =
          tiling::kKernelByRows<detail::RowFunction, detail::RowTile>[static_cast<std::size_t>(count - 1)];
      float* to = c + first * c_row + column;
      if (width == kPanel) return tile(a + first * a_row, a_row, depth, b, to, c_row);
      tile(a + first * a_row, a_row, depth, b, narrow, kPanel);
      for (std::int64_t i = 0; i < count; ++i) std::copy_n(narrow + i * kPanel, width, to + i * c_row);
    });
  }
}

}  // namespace tandem::kernels::direct
