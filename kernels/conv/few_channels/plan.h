// How a convolution of images with few channels is cut: a tile is a run of output pixels of one image, whole lines of
// it or a part of one line; its halo is the part of the image that their taps meet. By the sizes alone, so that the
// order of every sum is the same on all GPUs.
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cuda::few_channels {

/// Output pixels of a tile, at most.
constexpr int kTilePixels = 128;

/// Of a tile, in lines and columns of output, and of its halo, in lines and elements of the image.
struct TileExtent {
  std::int64_t lines, columns, halo_lines, halo_row;
};

inline TileExtent extent_of_tile(const ConvGeometry& g) {
  const std::int64_t columns = std::min<std::int64_t>(g.q, kTilePixels);
  const std::int64_t lines = columns < g.q ? 1 : std::clamp<std::int64_t>(kTilePixels / columns, 1, g.p);
  return {lines, columns, (lines - 1) * g.stride_h + (g.r - 1) * g.dilation_h + 1,
          ((columns - 1) * g.stride_w + (g.s - 1) * g.dilation_w + 1) * g.c};
}

/// Elements from one line of a halo to the next. Lanes that read together have taps on neighbouring lines: on two,
/// which are then half of the banks of shared memory apart, or on three where there are one or two channels, a quarter
/// apart.
constexpr std::int64_t pitch_of(std::int64_t halo_row, std::int64_t channels) {
  const std::int64_t offset = channels <= 2 ? 16 : 32;
  return (halo_row + offset - 1) / (2 * offset) * (2 * offset) + offset;
}

/// Tiles that a block of the forward pass takes one after the other: its weights are fetched once for all of them.
constexpr int forward_block_tiles(int tiles) {
  constexpr int kBlocks = 8 * implicit_gemm::kBlocksThatFill, kMost = 8;
  return std::clamp<int>(tiles / kBlocks, 1, kMost);
}

/// Tiles that a block sums up to one part of the weights' gradient.
constexpr int weight_part_tiles(int tiles) {
  constexpr int kMostParts = 4 * implicit_gemm::kBlocksThatFill;
  return (tiles + kMostParts - 1) / kMostParts;
}

}  // namespace tandem::kernels::cuda::few_channels
