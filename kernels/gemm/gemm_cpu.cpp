// The fast product: blocks of A and B packed for the register tile, tasks over parts of C.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/pack.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"
#include "tandem/kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::cpu {
namespace {

using tiling::kPanel;
using tiling::kTileRows;

// One block of each operand, kBlockK deep: A 1.8 MB and B 1 MB with AVX-512, shared by the threads; what a task reads
// again and again (kTaskPanels panels, kTaskTiles tiles of A) is a quarter of a 1 MiB L2.
constexpr std::int64_t kBlockM = 128 * kTileRows;
constexpr std::int64_t kBlockN = 32 * kPanel;
constexpr std::int64_t kTaskTiles = 8;
constexpr std::int64_t kTaskPanels = 4;

constexpr std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// to[k][i] = a(i, k) for one tile of `rows` rows.
template <typename T>
void pack_rows(MatrixView<T> a, std::int64_t rows, std::int64_t depth, float* to) {
  if constexpr (is_float<T>) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < depth; ++k) to[k * rows + i] = a.data[i * a.row_stride + k * a.column_stride];
  } else if (a.row_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) widen(a.data + k * a.column_stride, rows, to + k * rows);
  } else {
    alignas(64) float row[kBlockK];
    for (std::int64_t i = 0; i < rows; ++i) {
      widen(a.data + i * a.row_stride, a.column_stride, depth, row);
      for (std::int64_t k = 0; k < depth; ++k) to[k * rows + i] = row[k];
    }
  }
}

using TileFunction = void (*)(const float* a, const float* b, std::int64_t depth, bool accumulate, float* c,
                              std::int64_t c_row);

template <int kRows>
struct PackedTile {
  static void run(const float* a, const float* b, std::int64_t depth, bool accumulate, float* c, std::int64_t c_row) {
    tiling::multiply_tile<kRows, tiling::kPanelVectors>({.a = a,
                                                         .a_row = 1,
                                                         .a_k = kRows,
                                                         .a_segment = 0,
                                                         .segments = 1,
                                                         .segment = depth,
                                                         .b = b,
                                                         .b_k = kPanel,
                                                         .b_vector = simd::kLanes,
                                                         .c = c,
                                                         .c_row = c_row,
                                                         .c_vector = simd::kLanes,
                                                         .accumulate = accumulate});
  }
};

/// One tile of C; the last panel, when it is narrower, goes through a buffer.
void run_tile(const float* a, std::int64_t rows, const float* b, std::int64_t columns, std::int64_t depth,
              bool accumulate, float* c, std::int64_t c_row) {
  const TileFunction tile = tiling::kKernelByRows<TileFunction, PackedTile>[static_cast<std::size_t>(rows - 1)];
  if (columns >= kPanel) return tile(a, b, depth, accumulate, c, c_row);
  alignas(64) float whole[kTileRows * kPanel];
  tile(a, b, depth, false, whole, kPanel);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      float& out = c[i * c_row + j];
      out = accumulate ? out + whole[i * kPanel + j] : whole[i * kPanel + j];
    }
}

}  // namespace

template <typename A, typename B>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<A> a, MatrixView<B> b, bool accumulate, float* c,
          std::int64_t c_row_stride) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * c_row_stride, n, 0.0f);
    return;
  }
  const std::int64_t most_depth = std::min(k, kBlockK);
  const Scratch packed_a(std::min(m, kBlockM) * most_depth);
  const Scratch packed_b(parts_of(std::min(n, kBlockN), kPanel) * kPanel * most_depth);

  for (std::int64_t n0 = 0; n0 < n; n0 += kBlockN)
    for (std::int64_t k0 = 0; k0 < k; k0 += kBlockK) {
      const std::int64_t width = std::min(kBlockN, n - n0), depth = std::min(kBlockK, k - k0);
      const std::int64_t panels = parts_of(width, kPanel);
      for (std::int64_t m0 = 0; m0 < m; m0 += kBlockM) {
        const std::int64_t height = std::min(kBlockM, m - m0), tiles = parts_of(height, kTileRows);
        const auto first_row = [&](std::int64_t tile) { return height * tile / tiles; };

        for_each_task(tiles + (m0 == 0 ? panels : 0), [&](std::int64_t task, std::int64_t) {
          if (task < tiles) {
            const std::int64_t row = first_row(task);
            const MatrixView<A> from{a.data + (m0 + row) * a.row_stride + k0 * a.column_stride, a.row_stride,
                                     a.column_stride};
            return pack_rows(from, first_row(task + 1) - row, depth, packed_a.data() + row * depth);
          }
          const std::int64_t column = (task - tiles) * kPanel;
          const MatrixView<B> from{b.data + k0 * b.row_stride + (n0 + column) * b.column_stride, b.row_stride,
                                   b.column_stride};
          pack_columns(from, std::min<std::int64_t>(kPanel, width - column), depth, packed_b.data() + column * depth);
        });

        const std::int64_t tile_groups = parts_of(tiles, kTaskTiles), panel_groups = parts_of(panels, kTaskPanels);
        for_each_task(tile_groups * panel_groups, [&](std::int64_t task, std::int64_t) {
          const std::int64_t tile0 = task / panel_groups * kTaskTiles, panel0 = task % panel_groups * kTaskPanels;
          for (std::int64_t panel = panel0; panel < std::min(panels, panel0 + kTaskPanels); ++panel)
            for (std::int64_t tile = tile0; tile < std::min(tiles, tile0 + kTaskTiles); ++tile) {
              const std::int64_t row = first_row(tile), column = panel * kPanel;
              run_tile(packed_a.data() + row * depth, first_row(tile + 1) - row, packed_b.data() + column * depth,
                       std::min<std::int64_t>(kPanel, width - column), depth, accumulate || k0 > 0,
                       c + (m0 + row) * c_row_stride + n0 + column, c_row_stride);
            }
        });
      }
    }
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, bool, float*,
                   std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<Half>, bool, float*,
                   std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<BFloat16>, bool, float*,
                   std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<Half>, MatrixView<Half>, bool, float*,
                   std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<BFloat16>, MatrixView<BFloat16>, bool, float*,
                   std::int64_t);

bool supports_gemm(const Tensor& c) { return computes_in_float(c.dtype()); }

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  const std::int64_t rows = c.size(0), columns = c.size(1), depth = a.size(options.transpose_a ? 0 : 1);
  dispatch_float(c.dtype(), "gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto view = [](const Tensor& matrix, bool transposed) {
      return MatrixView<T>{matrix.data<T>(), matrix.stride(transposed ? 1 : 0), matrix.stride(transposed ? 0 : 1)};
    };
    const auto product = [&](bool accumulate, float* out, std::int64_t row_stride) {
      gemm(rows, columns, depth, view(a, options.transpose_a), view(b, options.transpose_b), accumulate, out,
           row_stride);
    };
    T* const result = c.data<T>();
    if constexpr (is_float<T>) {
      product(options.accumulate, result, c.stride(0));
    } else {  // C in float until it is whole, so that it is rounded once
      const Scratch sums(rows * columns);
      for (std::int64_t i = 0; options.accumulate && i < rows; ++i)
        widen(result + i * c.stride(0), columns, sums.data() + i * columns);
      product(options.accumulate, sums.data(), columns);
      for (std::int64_t i = 0; i < rows; ++i)
        round_floats(sums.data() + i * columns, columns, result + i * c.stride(0));
    }
  });
}

}  // namespace tandem::kernels::cpu
