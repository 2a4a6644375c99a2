// The device side of a WordLoop: from a word's number to its offsets, and the launch that covers all words.
#pragma once

#include "tandem/core/cuda/launch.h"
#include "tandem/core/cuda/word_loop.h"

#include <algorithm>

namespace tandem::cuda {

/// A loop nest as a kernel takes it; innermost dimension first.
template <typename Index>
struct DeviceLoop {
  Index sizes[kMaxRank] = {};
  Index to[kMaxRank] = {};
  Index from[kMaxRank] = {};
  Index count = 0;
  int rank = 0;
};

template <typename Index>
DeviceLoop<Index> make_device_loop(const WordLoop& loop) {
  DeviceLoop<Index> result;
  result.count = static_cast<Index>(loop.count());
  result.rank = loop.nest.sizes.rank();
  for (int dim = 0; dim < result.rank; ++dim) {
    const int source = result.rank - 1 - dim;
    result.sizes[dim] = static_cast<Index>(loop.nest.sizes[source]);
    result.to[dim] = static_cast<Index>(loop.nest.to[source]);
    result.from[dim] = static_cast<Index>(loop.nest.from[source]);
  }
  return result;
}

/// Where the `index`-th word stands on either side.
template <typename Index>
struct WordPlace {
  Index to = 0;
  Index from = 0;

  __device__ WordPlace(const DeviceLoop<Index>& loop, Index index) {
    // Over a fixed number of dimensions, so that the loop's arrays are read by constants and stay where they are.
    for (int dim = 0; dim < kMaxRank; ++dim) {
      if (dim + 1 == loop.rank) {
        to += index * loop.to[dim];
        from += index * loop.from[dim];
        return;
      }
      const Index rest = index / loop.sizes[dim];
      const Index at = index - rest * loop.sizes[dim];
      to += at * loop.to[dim];
      from += at * loop.from[dim];
      index = rest;
    }
  }
};

constexpr unsigned kWordThreads = 256;

/// Blocks for `count` words, `per_block` of them each; blocks continue in steps of the whole grid, so that no size is
/// too large.
inline unsigned word_blocks(std::int64_t count, std::int64_t per_block = kWordThreads) {
  constexpr std::int64_t kMostBlocks = 1 << 16;
  return static_cast<unsigned>(std::min((count + per_block - 1) / per_block, kMostBlocks));
}

/// Calls `visit(TypeTag<Word>{}, device_loop)` with 32-bit indices where they are enough, else with 64-bit ones.
template <typename Visitor>
void dispatch_word_loop(const WordLoop& loop, Visitor&& visit) {
  dispatch_word(loop.word_bytes, [&](auto word) {
    if (loop.is_small()) return visit(word, make_device_loop<std::uint32_t>(loop));
    visit(word, make_device_loop<std::uint64_t>(loop));
  });
}

}  // namespace tandem::cuda
