// One product of a warpgroup, its operands fetched as tiles, for comparison with plain products.
#pragma once

#include <vector>

namespace tandem::test {

/// How an operand lies in global memory: [rows][64 depths], or else [64 depths][rows].
struct WarpgroupProductCase {
  bool a_along_depth, b_along_depth, bf16;
  int columns;  // 128 or 256
};

/// a [64 rows][64 depths] times b [64 depths][columns], both given that way; row-major.
std::vector<float> warpgroup_product(const WarpgroupProductCase& one, const std::vector<float>& a,
                                     const std::vector<float>& b);

/// The tile [4 x 8 x 8 x 16] from (image, line, column, channel) on of numbers [3, 5, 7, 24], zeros around it.
std::vector<float> fetched_tile(const std::vector<float>& numbers, int image, int line, int column, int channel);

}  // namespace tandem::test
