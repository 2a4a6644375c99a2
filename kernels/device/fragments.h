// Which lane holds or brings what in tensor-core products of 16-bit numbers (PTX ISA, "mma.m16n8k16", "ldmatrix").
#pragma once

namespace tandem::device {

/// One row of 8 numbers: line and vector of 8 columns within a 16 x 16 block.
struct BlockRow {
  int line, vector;
};

/// The row whose address a lane gives to ldmatrix_x4, so that the four 8 x 8 matrices of a 16 x 16 block come in this
/// order: upper left, lower left, upper right, lower right.
constexpr BlockRow down_then_across(int lane) { return {lane % 16, lane / 16}; }

/// The same for: upper left, upper right, lower left, lower right.
constexpr BlockRow across_then_down(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

/// Where the four sums of a lane stand in the 16 x 8 result: two neighbours each in rows sum_row(lane) and + 8.
constexpr int sum_row(int lane) { return lane / 4; }
constexpr int sum_column(int lane) { return lane % 4 * 2; }

}  // namespace tandem::device
