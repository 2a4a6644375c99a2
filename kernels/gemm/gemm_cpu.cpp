// The fast f32 product: blocks of A and B packed for the register tile, tasks over parts of C.
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"
#include "kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::cpu {
namespace {

using tiling::kPanel;
using tiling::kTileRows;

// One block of each operand: A 1.8 MB and B 1 MB with AVX-512, shared by the threads; what a task reads again and
// again (kTaskPanels panels, kTaskTiles tiles of A) is a quarter of a 1 MiB L2.
constexpr std::int64_t kBlockK = 256;
constexpr std::int64_t kBlockM = 128 * kTileRows;
constexpr std::int64_t kBlockN = 32 * kPanel;
constexpr std::int64_t kTaskTiles = 8;
constexpr std::int64_t kTaskPanels = 4;

constexpr std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// to[k][i] = a(i, k) for one tile of `rows` rows.
void pack_rows(MatrixView a, std::int64_t rows, std::int64_t depth, float* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < depth; ++k) to[k * rows + i] = a.data[i * a.row_stride + k * a.column_stride];
}

/// to[k][j] = b(k, j) for one panel, filled up with zeros to kPanel columns.
void pack_columns(MatrixView b, std::int64_t columns, std::int64_t depth, float* to) {
  if (columns < kPanel) std::fill(to, to + depth * kPanel, 0.0f);
  if (b.column_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) std::copy_n(b.data + k * b.row_stride, columns, to + k * kPanel);
    return;
  }
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t k = 0; k < depth; ++k) to[k * kPanel + j] = b.data[k * b.row_stride + j * b.column_stride];
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

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, bool accumulate, float* c,
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
            const MatrixView from{a.data + (m0 + row) * a.row_stride + k0 * a.column_stride, a.row_stride,
                                  a.column_stride};
            return pack_rows(from, first_row(task + 1) - row, depth, packed_a.data() + row * depth);
          }
          const std::int64_t column = (task - tiles) * kPanel;
          const MatrixView from{b.data + k0 * b.row_stride + (n0 + column) * b.column_stride, b.row_stride,
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

bool supports_gemm(const Tensor& a, const Tensor& b, const Tensor& c) {
  return a.dtype() == DType::f32 && b.dtype() == DType::f32 && c.dtype() == DType::f32;
}

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor& c) {
  const auto view = [](const Tensor& matrix, bool transposed) {
    return MatrixView{matrix.data<float>(), matrix.stride(transposed ? 1 : 0), matrix.stride(transposed ? 0 : 1)};
  };
  gemm(c.size(0), c.size(1), a.size(options.transpose_a ? 0 : 1), view(a, options.transpose_a),
       view(b, options.transpose_b), options.accumulate, c.data<float>(), c.stride(0));
}

}  // namespace tandem::kernels::cpu
