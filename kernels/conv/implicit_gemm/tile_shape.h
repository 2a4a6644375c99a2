// The tiles of the tensor-core convolutions, and which one a geometry gets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cuda::implicit_gemm {

/// What each step of the main loop takes of every row and column: four tensor-core instructions deep.
constexpr int kStepBytes = 128;

/// Numbers in that: products that a step adds to every sum.
template <typename T>
constexpr int kStepDepth = kStepBytes / static_cast<int>(sizeof(T));

/// Numbers that one copy of 16 bytes moves.
template <typename T>
constexpr int kVectorSize = 16 / static_cast<int>(sizeof(T));

/// A block sums up a tile of kRows x kColumns results, each of its warps a tile of kWarpRows x kWarpColumns. kStages
/// steps of operands are in shared memory: one is multiplied while the others arrive.
template <int kRows_, int kColumns_, int kWarpRows_, int kWarpColumns_, int kStages_>
struct TileShape {
  static constexpr int kRows = kRows_, kColumns = kColumns_;
  static constexpr int kWarpRows = kWarpRows_, kWarpColumns = kWarpColumns_;
  static constexpr int kStages = kStages_;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kThreads = kRows / kWarpRows * kWarpsAcross * 32;
  static constexpr int kBlocksAtOnce = 256 / kThreads;  // that a multiprocessor must have registers for
  static constexpr int kStageBytes = (kRows + kColumns) * kStepBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes;
};

using WideTile = TileShape<128, 128, 64, 32, 3>;
using TallTile = TileShape<128, 64, 64, 32, 4>;
using SmallTile = TileShape<64, 64, 32, 32, 4>;
using NarrowTile = TileShape<128, 32, 32, 32, 4>;

enum class Tile : std::uint8_t { wide, tall, small, narrow };

/// Calls visit(TileShape{}) with the type of `tile`.
template <typename Visitor>
void with_tile(Tile tile, Visitor&& visit) {
  switch (tile) {
    case Tile::wide:
      return visit(WideTile{});
    case Tile::tall:
      return visit(TallTile{});
    case Tile::small:
      return visit(SmallTile{});
    case Tile::narrow:
      return visit(NarrowTile{});
  }
}

inline int rows_of(Tile tile) {
  int rows = 0;
  with_tile(tile, [&](auto shape) { rows = decltype(shape)::kRows; });
  return rows;
}

/// Blocks that keep a large GPU busy: about one for each multiprocessor.
constexpr std::int64_t kBlocksThatFill = 128;

constexpr std::int64_t tiles_along(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

/// For many rows (pixels) and some columns (channels): the largest tile of which there are enough, and which columns
/// fill. Depends on the sizes alone, not on the GPU.
constexpr Tile choose_tile(std::int64_t rows, std::int64_t columns) {
  if (columns <= NarrowTile::kColumns) return Tile::narrow;
  const bool fills_wide = columns % WideTile::kColumns == 0 || columns % WideTile::kColumns > TallTile::kColumns;
  const auto blocks = [&](std::int64_t tile_rows, std::int64_t tile_columns) {
    return tiles_along(rows, tile_rows) * tiles_along(columns, tile_columns);
  };
  if (fills_wide && blocks(WideTile::kRows, WideTile::kColumns) >= kBlocksThatFill) return Tile::wide;
  if (blocks(TallTile::kRows, TallTile::kColumns) >= kBlocksThatFill) return Tile::tall;
  return Tile::small;
}

/// How the gradient of weights [rows, columns] is cut: the sums over pixels in `parts` of `part_steps` steps each, a
/// step being `step_depth` pixels.
struct WeightPlan {
  Tile tile;  // wide or small
  std::int64_t parts, part_steps;
};

/// Depends on the sizes alone, so that the order of every sum is the same on all GPUs.
constexpr WeightPlan plan_weights(std::int64_t rows, std::int64_t columns, std::int64_t pixels,
                                  std::int64_t step_depth) {
  constexpr std::int64_t kLeastSteps = 2;  // less is not worth its share of the second launch
  const bool wide = rows > SmallTile::kRows && columns > SmallTile::kColumns;
  const std::int64_t tile_rows = wide ? WideTile::kRows : SmallTile::kRows;
  const std::int64_t tile_columns = wide ? WideTile::kColumns : SmallTile::kColumns;
  const std::int64_t tiles = tiles_along(rows, tile_rows) * tiles_along(columns, tile_columns);
  const std::int64_t steps = tiles_along(pixels, step_depth);
  const std::int64_t most_parts = std::max<std::int64_t>(2 * kBlocksThatFill / tiles, 1);
  const std::int64_t parts = std::clamp<std::int64_t>(steps / kLeastSteps, 1, most_parts);
  const std::int64_t part_steps = tiles_along(steps, parts);
  return {wide ? Tile::wide : Tile::small, tiles_along(steps, part_steps), part_steps};
}

}  // namespace tandem::kernels::cuda::implicit_gemm
