// How a convolution is cut for warpgroups: tiles of 128 pixels that are boxes of images, lines and columns, and blocks
// of threads of which one fetches and the others multiply. By the sizes alone, so that sums are the same on all GPUs.
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/device/warpgroup_layout.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cuda::warpgroup {

using implicit_gemm::tiles_along;

/// A block sums up 128 rows and kColumns columns, each of two warpgroups half of the rows, while one thread of a third
/// fetches operands: kStages steps of 64 depths are in shared memory. Names as of implicit_gemm::TileShape.
template <int kColumns_, int kStages_, bool kStoresTiles>
struct BlockShape {
  static constexpr int kRows = 2 * device::kWarpgroupRows, kColumns = kColumns_;
  static constexpr int kWarpRows = 16, kWarpColumns = kColumns, kWarpsAcross = 1;
  static constexpr int kThreads = 2 * device::kWarpgroupThreads;  // that multiply
  static constexpr int kBlockThreads = kThreads + device::kWarpgroupThreads;
  static constexpr int kBarrier = 1;  // of those that multiply
  static constexpr int kStages = kStages_;
  static constexpr int kLeftBytes = kRows * device::kLineBytes, kRightBytes = kColumns * device::kLineBytes;
  static constexpr int kStageBytes = kLeftBytes + kRightBytes;
  static constexpr int kSharedBytes = kStoresTiles ? kRows * kColumns * 2 + kThreads * 32 + 64 : 0;  // of store_tile()
  static constexpr int kBarrierBytes = 2 * kStages * 8;
  static constexpr int kDynamicBytes = device::kSwizzledBytes + kStages * kStageBytes + kSharedBytes + kBarrierBytes;
};

using WideImageBlock = BlockShape<256, 3, true>;
using ImageBlock = BlockShape<128, 5, true>;
using WideWeightBlock = BlockShape<256, 4, false>;
using WeightBlock = BlockShape<128, 6, false>;

/// Columns from which on the wide blocks, which fetch less for each sum, are full enough.
constexpr bool takes_wide_block(std::int64_t columns) { return columns > 128; }

/// A pixel of a box, as seen from its first one.
struct BoxPixel {
  int image, line, column;

  friend constexpr bool operator==(const BoxPixel&, const BoxPixel&) = default;
};

/// Pixels of a tile: so many images x lines x columns, which are powers of two. Rows go along lines first.
struct PixelBox {
  int image_bits, line_bits, column_bits;

  constexpr int images() const { return 1 << image_bits; }
  constexpr int lines() const { return 1 << line_bits; }
  constexpr int columns() const { return 1 << column_bits; }
  constexpr BoxPixel pixel(int row) const {
    return {row >> (column_bits + line_bits), row >> column_bits & (lines() - 1), row & (columns() - 1)};
  }

  friend constexpr bool operator==(const PixelBox&, const PixelBox&) = default;
};

/// How many boxes cover images of lines x columns.
constexpr std::int64_t boxes_of(const PixelBox& box, std::int64_t images, std::int64_t lines, std::int64_t columns) {
  return tiles_along(images, box.images()) * tiles_along(lines, box.lines()) * tiles_along(columns, box.columns());
}

/// The box of `pixels` (a power of two) of which the fewest cover the images; of equals the one of the longest lines,
/// then of the most lines.
constexpr PixelBox choose_box(int pixels, std::int64_t images, std::int64_t lines, std::int64_t columns) {
  int bits = 0;
  while (1 << bits < pixels) ++bits;
  PixelBox best{0, 0, bits};
  for (int column_bits = bits; column_bits >= 0; --column_bits)
    for (int line_bits = bits - column_bits; line_bits >= 0; --line_bits) {
      const PixelBox box{bits - column_bits - line_bits, line_bits, column_bits};
      if (boxes_of(box, images, lines, columns) < boxes_of(best, images, lines, columns)) best = box;
    }
  return best;
}

/// Pixels of a tile of images, and of a step of the gradient of weights.
constexpr int kImagePixels = ImageBlock::kRows, kWeightPixels = device::kLineHalves;

/// How the gradient of weights is cut: tiles of output channels, taps and input channels, whose sums over pixels are
/// cut into `parts` of `part_boxes` boxes.
struct WeightParts {
  PixelBox box;
  std::int64_t boxes, row_tiles, channel_tiles, tiles, parts, part_boxes;

  explicit WeightParts(const ConvGeometry& g)
      : box(choose_box(kWeightPixels, g.n, g.p, g.q)),
        boxes(boxes_of(box, g.n, g.p, g.q)),
        row_tiles(tiles_along(g.k, WeightBlock::kRows)),
        channel_tiles(tiles_along(g.c, takes_wide_block(g.c) ? WideWeightBlock::kColumns : WeightBlock::kColumns)),
        tiles(row_tiles * g.r * g.s * channel_tiles) {
    constexpr std::int64_t kLeastBoxes = 4;  // less is not worth its share of the sums' traffic
    const std::int64_t most = std::max<std::int64_t>(2 * implicit_gemm::kBlocksThatFill / tiles, 1);
    part_boxes = tiles_along(boxes, std::clamp<std::int64_t>(boxes / kLeastBoxes, 1, most));
    parts = tiles_along(boxes, part_boxes);
  }
};

}  // namespace tandem::kernels::cuda::warpgroup
