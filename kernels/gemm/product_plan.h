// How a matrix product is cut into blocks of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::kernels {

/// Tiles of `tile` x `tile` results, and parts of the depth that are summed apart and then added.
struct ProductPlan {
  int tile;
  std::int64_t row_tiles;
  std::int64_t column_tiles;
  std::int64_t parts;
  std::int64_t part_depth;
};

/// Depends on the sizes alone, not on the GPU, so that the order of every sum is the same on all of them.
inline ProductPlan plan_product(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kBlocksWanted = 264;  // two for each multiprocessor of a large GPU
  constexpr std::int64_t kBlocksForLarge = 32;
  constexpr std::int64_t kLeastPart = 128;  // less is not worth a second launch
  constexpr std::int64_t kRound = 16;
  const auto with_tile = [&](int tile) {
    ProductPlan plan{tile, (rows + tile - 1) / tile, (columns + tile - 1) / tile, 1, depth};
    const std::int64_t tiles = std::max<std::int64_t>(plan.row_tiles * plan.column_tiles, 1);
    const std::int64_t parts =
        std::clamp<std::int64_t>(depth / kLeastPart, 1, std::max<std::int64_t>(kBlocksWanted / tiles, 1));
    if (parts == 1) return plan;
    plan.part_depth = ((depth + parts - 1) / parts + kRound - 1) / kRound * kRound;
    plan.parts = (depth + plan.part_depth - 1) / plan.part_depth;
    return plan;
  };
  const ProductPlan large = with_tile(64);
  const bool fills = large.row_tiles * large.column_tiles * large.parts >= kBlocksForLarge;
  return rows > 32 && columns > 32 && fills ? large : with_tile(32);
}

}  // namespace tandem::kernels
