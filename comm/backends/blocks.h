// Where the parts of collectives lie in memory. Internal to comm/backends.
#pragma once

#include "tandem/comm/collective.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace tandem::comm {

/// Bytes somewhere in an input or output.
struct Block {
  std::byte* data = nullptr;  ///< of inputs, too: only read there
  std::int64_t bytes = 0;
};

/// One after another from `memory` on; `counts` in elements.
inline std::vector<Block> blocks_of(const void* memory, const std::vector<std::int64_t>& counts, DType dtype) {
  std::vector<Block> blocks;
  auto* at = static_cast<std::byte*>(const_cast<void*>(memory));
  for (const std::int64_t count : counts) {
    const std::int64_t bytes = count * size_of(dtype);
    blocks.push_back({at, bytes});
    at += bytes;
  }
  return blocks;
}

/// What a rank sends to each rank, itself among them, and gets from it.
struct BlockExchange {
  std::vector<Block> sent, received;  ///< by rank; empty blocks for nothing
};

/// Of collectives that only move elements: all but reductions and barrier. Messages, too.
BlockExchange exchange_of(const Collective& collective, int rank, int ranks);

/// Does nothing where they are the same place.
inline void copy_block(const void* from, void* to, std::int64_t bytes) {
  if (from != to && bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace tandem::comm
