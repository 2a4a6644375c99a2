// How a convolution is cut whose weights stay in shared memory: blocks take one tile of output pixels of one image
// after the other, and of each tile they fetch the part of the image that its taps meet, its halo, once for all taps.
#pragma once

#include "kernels/conv/implementations.h"
#include "kernels/conv/implicit_gemm/patch_axis.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cuda::stationary {

using implicit_gemm::PatchAxis;

/// Output pixels of a line of a tile.
constexpr int kTileColumns = 16;

/// Each warp sums up two lines of a tile for all of the block's output channels, kColumns. Input channels are padded to
/// kChannels. The names are those of implicit_gemm::TileShape.
template <int kChannels_, int kColumns_>
struct BlockShape {
  static constexpr int kChannels = kChannels_, kColumns = kColumns_;
  static constexpr int kLines = kChannels <= 64 ? 16 : 8;
  static constexpr int kRows = kLines * kTileColumns;
  static constexpr int kWarpRows = 2 * kTileColumns, kWarpColumns = kColumns;
  static constexpr int kWarpsAcross = 1;
  static constexpr int kThreads = kRows / kWarpRows * 32;
  static constexpr int kBlocksAtOnce = kChannels == 32 && kColumns == 32 ? 2 : 1;  // on a multiprocessor
  static constexpr int kSharedBytes = kRows * kColumns * 2 + kThreads * 32 + 64;  // what store_tile() uses
};

/// Input channels of the largest shape, and output channels for which one was planned.
constexpr std::int64_t kMostChannels = 128;

/// Calls visit(BlockShape{}) with the shape for so many input and output channels.
template <typename Visitor>
void with_shape(std::int64_t channels, std::int64_t columns, Visitor&& visit) {
  const bool narrow = columns <= 32;
  if (channels > 64) return visit(BlockShape<128, 32>{});
  if (channels > 32) return narrow ? visit(BlockShape<64, 32>{}) : visit(BlockShape<64, 64>{});
  return narrow ? visit(BlockShape<32, 32>{}) : visit(BlockShape<32, 64>{});
}

/// A pass in "forward" terms: its sums run over channels and taps of images, and it makes `columns` numbers of each
/// output pixel. Strides are 1.
struct Task {
  PatchAxis down, across;
  std::int64_t images, channels, columns;
  int window;  // 2: only whole windows of 2 x 2 outputs are made

  Task(const ConvGeometry& g, StationaryPass pass)
      : down(implicit_gemm::patches_down(g)),
        across(implicit_gemm::patches_across(g)),
        images(g.n),
        channels(g.c),
        columns(g.k),
        window(pass == StationaryPass::forward_pool ? 2 : 1) {
    if (pass != StationaryPass::backward_input) return;
    // Tap t of the gradient's output i meets input i + pad - t * dilation.
    const auto turned = [](const PatchAxis& axis) {
      return PatchAxis{axis.inputs, axis.outputs, axis.taps, 1, -axis.first, -axis.step};
    };
    down = turned(down);
    across = turned(across);
    std::swap(channels, columns);
  }

  std::int64_t taps() const { return std::int64_t{down.taps} * across.taps; }
  /// Output pixels that are made.
  std::int64_t lines() const { return down.outputs / window * window; }
  std::int64_t line() const { return across.outputs / window * window; }
};

/// The sizes that follow from a task; a pitch is how many pixels lie from one line of a halo to the next.
struct Plan {
  std::int64_t tile_lines = 0, tile_channels = 0, tile_columns = 0;
  std::int64_t tiles_down, tiles_across;
  std::int64_t halo_lines, halo_columns, pitch;
  std::int64_t weight_elements, buffer_elements;  // of shared memory; there are two buffers for halos and results

  explicit Plan(const Task& task) {
    std::int64_t result_bytes = 0;
    with_shape(task.channels, task.columns, [&]<typename Shape>(Shape) {
      tile_lines = Shape::kLines;
      tile_channels = Shape::kChannels;
      tile_columns = Shape::kColumns;
      result_bytes = Shape::kSharedBytes;
    });
    const auto reach = [](const PatchAxis& axis) { return std::int64_t{axis.taps - 1} * std::abs(axis.step); };
    tiles_down = (task.lines() + tile_lines - 1) / tile_lines;
    tiles_across = (task.line() + kTileColumns - 1) / kTileColumns;
    halo_lines = tile_lines + reach(task.down);
    halo_columns = kTileColumns + reach(task.across);
    // Lanes read eight pixels of a line together, or two lines of four where outputs are windows: lines that are an odd
    // multiple of four apart have these in different banks.
    pitch = task.window == 1 ? halo_columns : (halo_columns + 3) / 8 * 8 + 4;
    weight_elements = task.taps() * tile_channels * tile_columns;
    buffer_elements = std::max(halo_lines * pitch * tile_channels, result_bytes / 2);
  }

  std::int64_t tiles(std::int64_t images) const { return images * tiles_down * tiles_across; }
  std::int64_t shared_bytes() const { return 2 * (weight_elements + 2 * buffer_elements); }
};

}  // namespace tandem::kernels::cuda::stationary
