// How a convolution is cut whose weights stay in shared memory: blocks take one tile of output pixels of one image
// after the other, and of each tile they fetch the part of the image that its taps meet, its halo, once for all taps.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/patch_axis.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/stationary/stationary.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cuda::stationary {

using implicit_gemm::PatchAxis;
using implicit_gemm::tiles_along;

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
  static constexpr int kSharedBytes = kRows * kColumns * 2 + kThreads * 32 + 64;   // what store_tile() uses
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

  Task(const ConvGeometry& g, PassKind pass)
      : down(implicit_gemm::patches_down(g)),
        across(implicit_gemm::patches_across(g)),
        images(g.n),
        channels(g.c),
        columns(g.k),
        window(pass == PassKind::forward_pool || pass == PassKind::forward_pool_moments ? 2 : 1) {
    if (pass != PassKind::backward_input) return;
    // Tap t of the gradient's output i meets input i + pad - t * dilation.
    const auto flipped = [](const PatchAxis& axis) {
      return PatchAxis{axis.inputs, axis.outputs, axis.taps, 1, -axis.first, -axis.step};
    };
    down = flipped(down);
    across = flipped(across);
    std::swap(channels, columns);
  }

  std::int64_t taps() const { return std::int64_t{down.taps} * across.taps; }
  /// Output pixels that are made.
  std::int64_t lines() const { return down.outputs / window * window; }
  std::int64_t line() const { return across.outputs / window * window; }
};

constexpr std::int64_t tiles_of_image(std::int64_t lines, std::int64_t columns, std::int64_t tile_lines) {
  return tiles_along(lines, tile_lines) * tiles_along(columns, kTileColumns);
}

/// The part of an image that the taps of a tile meet, in pixels, and how many lie from one of its lines to the next.
struct HaloExtent {
  std::int64_t lines, columns, pitch;

  HaloExtent(const PatchAxis& down, const PatchAxis& across, std::int64_t tile_lines, int window = 1)
      : lines(tile_lines + reach(down)), columns(kTileColumns + reach(across)) {
    // Lanes read eight pixels of a line together, or two lines of four where outputs are windows: lines that are an odd
    // multiple of four apart have these in different banks.
    pitch = window == 1 ? columns : (columns + 3) / 8 * 8 + 4;
  }

  std::int64_t pixels() const { return lines * pitch; }

 private:
  static std::int64_t reach(const PatchAxis& axis) { return std::int64_t{axis.taps - 1} * std::abs(axis.step); }
};

/// The sizes that follow from a task.
struct Plan {
  std::int64_t tile_lines = 0, tile_channels = 0, tile_columns = 0;
  HaloExtent halo;
  std::int64_t weight_elements = 0, buffer_elements = 0;  // of shared memory; two buffers for halos and results

  explicit Plan(const Task& task) : halo(task.down, task.across, 0, task.window) {
    with_shape(task.channels, task.columns, [&]<typename Shape>(Shape) {
      tile_lines = Shape::kLines;
      tile_channels = Shape::kChannels;
      tile_columns = Shape::kColumns;
      halo = HaloExtent(task.down, task.across, tile_lines, task.window);
      weight_elements = task.taps() * tile_channels * tile_columns;
      buffer_elements = std::max<std::int64_t>(halo.pixels() * tile_channels, Shape::kSharedBytes / 2);
    });
  }

  std::int64_t shared_bytes() const { return 2 * (weight_elements + 2 * buffer_elements); }
};

/// Tiles of all images.
inline std::int64_t tiles_of(const Task& task) {
  return task.images * tiles_of_image(task.lines(), task.line(), Plan(task).tile_lines);
}

/// The gradient of weights: a block keeps the sums of all of them in registers, and adds to them tile by tile. Each
/// warp has, for every tap, a block of 8 input channels and kWarpRows output channels.
template <int kChannels_, int kOutputs_>
struct WeightShape {
  static constexpr int kChannels = kChannels_, kOutputs = kOutputs_;
  static constexpr int kLines = 16, kPixels = kLines * kTileColumns;
  static constexpr int kThreads = 256;
  static constexpr int kWarpsAcross = kChannels / 8;
  static constexpr int kWarpRows = kOutputs / (kThreads / 32 / kWarpsAcross);
  static constexpr int kBlocksAtOnce = kWarpRows == 16 ? 2 : 1;  // on a multiprocessor
};

/// Taps of the largest kernel whose sums a block has registers for, and the most channels.
constexpr int kMostWeightTaps = 9;
constexpr std::int64_t kMostWeightChannels = 64;

/// Calls visit(WeightShape{}) with the shape for so many input and output channels.
template <typename Visitor>
void with_weight_shape(std::int64_t channels, std::int64_t outputs, Visitor&& visit) {
  const bool few_outputs = outputs <= 32;
  if (channels > 32) return few_outputs ? visit(WeightShape<64, 32>{}) : visit(WeightShape<64, 64>{});
  return few_outputs ? visit(WeightShape<32, 32>{}) : visit(WeightShape<32, 64>{});
}

/// How tiles are dealt to blocks, each of which leaves one part of the sums: by the sizes alone, so that the order of
/// every sum is the same on all GPUs.
struct WeightParts {
  std::int64_t tiles, part_tiles, parts;
  HaloExtent halo;
  std::int64_t halo_elements = 0, gradient_elements = 0;  // of shared memory, twice

  explicit WeightParts(const ConvGeometry& g)
      : halo(implicit_gemm::patches_down(g), implicit_gemm::patches_across(g), 0) {
    with_weight_shape(g.c, g.k, [&]<typename Shape>(Shape) {
      halo = HaloExtent(implicit_gemm::patches_down(g), implicit_gemm::patches_across(g), Shape::kLines);
      halo_elements = halo.pixels() * Shape::kChannels;
      gradient_elements = std::int64_t{Shape::kPixels} * Shape::kOutputs;
      tiles = g.n * tiles_of_image(g.p, g.q, Shape::kLines);
      part_tiles = tiles_along(tiles, std::min(tiles, implicit_gemm::kBlocksThatFill * Shape::kBlocksAtOnce));
      parts = tiles_along(tiles, part_tiles);
    });
  }

  /// Of dynamic shared memory, and of all: device::Phases has a number there, for which nvcc takes 16 bytes.
  /// @{
  std::int64_t shared_bytes() const { return 2 * 2 * (halo_elements + gradient_elements); }
  std::int64_t all_shared_bytes() const { return shared_bytes() + 16; }
  /// @}
};

}  // namespace tandem::kernels::cuda::stationary
