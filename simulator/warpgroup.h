// wgmma: products of four warps with operands in shared memory. (PTX ISA, "Asynchronous warpgroup level matrix
// instructions")
//
// Each warp sums up 16 rows; its lanes' shares of every 16 x 8 sums are those of mma.m16n8k16 (matrix.h). Here each
// warp works for itself, when it waits: what it multiplies must lie untouched until then, and its sums are old until
// then.
#pragma once

#include "tandem/simulator/matrix.h"
#include "tandem/simulator/thread.h"

#include <cstdint>
#include <source_location>

namespace tandem::simulator {

/// d += a b of 64 x 16 by 16 x columns; a and b are descriptors. "Transposed" operands lie with their rows (of a) or
/// columns (of b) as neighbours, others with their depths.
struct WarpgroupProduct {
  MatrixType type = MatrixType::f16;
  unsigned columns = 0;
  std::uint64_t a = 0, b = 0;
  bool a_transposed = false, b_transposed = false;

  friend bool operator==(const WarpgroupProduct&, const WarpgroupProduct&) = default;
};

/// Enqueues a product to `sums`, this lane's columns / 2 of them.
void multiply_warpgroup(float* sums, const WarpgroupProduct& product, std::source_location where);
/// Closes the group of products since the last commit.
void commit_warpgroup_products();
/// Waits for all groups but the newest `pending`. All lanes of a warp come.
void wait_for_warpgroup_products(unsigned pending, std::source_location where);

/// Where an operand's number lies, as an offset in shared memory, by its descriptor: `row` of a (or column of b),
/// `depth` below 16.
unsigned operand_offset(std::uint64_t descriptor, bool transposed, unsigned row, unsigned depth);

// Called by the engine.
void clear_warpgroup_products();
void check_warpgroup_products_at_exit(const Thread& thread);

}  // namespace tandem::simulator
