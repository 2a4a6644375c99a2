// How tiles of operands lie in shared memory, and which of their rows a lane fetches.
#pragma once

#include "kernels/conv/implicit_gemm/tile_shape.h"
#include "kernels/device/fragments.h"
#include "kernels/device/swizzle.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// A tile of kSize rows, kStepDepth deep. Its lines are rows, each with all depths, or else depths, each with all rows:
/// whichever way neighbours lie in global memory. For the right operand of a product, read "column" for "row".
template <int kSize, bool kAlongDepth_>
struct TileLayout {
  static constexpr bool kAlongDepth = kAlongDepth_;
  static constexpr int kLines = kAlongDepth ? kSize : kStepDepth;
  static constexpr int kPieces = (kAlongDepth ? kStepDepth : kSize) / kPiece;  // of a line

  /// Offset in elements.
  static constexpr int place(int line, int piece) { return device::swizzled<kPieces>(line, piece) * kPiece; }

  /// Where the row of 8 numbers lies that a lane fetches of the 16 rows and 16 depths from (row, depth) on, for a left
  /// operand of m16n8k16 (upper rows before lower ones before greater depths) ...
  static constexpr int left(int lane, int row, int depth) {
    return place_in_block(kAlongDepth ? device::down_then_across(lane) : device::across_then_down(lane), row, depth);
  }
  /// ... and for two right operands of 8 columns each (lesser depths before greater ones before the second operand).
  static constexpr int right(int lane, int column, int depth) {
    return place_in_block(kAlongDepth ? device::across_then_down(lane) : device::down_then_across(lane), column, depth);
  }

 private:
  static constexpr int place_in_block(device::BlockRow at, int row, int depth) {
    return kAlongDepth ? place(row + at.line, depth / kPiece + at.piece)
                       : place(depth + at.line, row / kPiece + at.piece);
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm
