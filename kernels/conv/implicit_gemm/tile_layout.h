// How tiles of operands lie in shared memory, and which of their numbers a lane fetches.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/swizzle.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// The place, in elements, of a vector of a line of kElements that lanes meet across its length: 16-bit numbers vector
/// by vector (ldmatrix, pairs of neighbours), 32-bit ones by two vectors of four lines.
template <typename T, int kElements>
constexpr int across_place(int line, int vector) {
  constexpr int kVectors = kElements / kVectorSize<T>;
  if constexpr (sizeof(T) == 2) {
    return device::swizzled<kVectors>(line, vector) * kVectorSize<T>;
  } else {
    return device::swizzled_by_twos<kVectors>(line, vector) * kVectorSize<T>;
  }
}

/// A tile of kSize rows, a step deep. Its lines are rows, each with all depths, or else depths, each with all rows:
/// whichever way neighbours lie in global memory. For the right operand of a product, read "column" for "row".
template <typename T, int kSize, bool kAlongDepth_>
struct TileLayout {
  static constexpr bool kAlongDepth = kAlongDepth_;
  static constexpr int kLines = kAlongDepth ? kSize : kStepDepth<T>;
  static constexpr int kVectors = (kAlongDepth ? kStepDepth<T> : kSize) / kVectorSize<T>;  // of a line

  /// Offset in elements.
  static constexpr int place(int line, int vector) {
    if constexpr (kAlongDepth) {
      return device::swizzled<kVectors>(line, vector) * kVectorSize<T>;
    } else {
      return across_place<T, kSize>(line, vector);
    }
  }

  /// Where the row of 16 bytes lies that a lane fetches of the 16 rows and 32 bytes of depth from (row, depth) on, for
  /// a left operand of m16n8k16 or m16n8k8 (upper rows before lower ones before greater depths) ...
  static constexpr int left(int lane, int row, int depth) {
    return place_in_block(kAlongDepth ? device::down_then_across(lane) : device::across_then_down(lane), row, depth);
  }
  /// ... and for two right operands of 8 columns each (lesser depths before greater ones before the second operand).
  static constexpr int right(int lane, int column, int depth) {
    return place_in_block(kAlongDepth ? device::across_then_down(lane) : device::down_then_across(lane), column, depth);
  }

  /// Where the number lies that a lane fetches of the 8 rows and 4 depths from (row, depth) on, a multiple of each,
  /// where lines are depths: ldmatrix transposes no numbers of 32 bits. A multiple of 32 may be added to the result
  /// instead of the row, which spares the swizzle.
  static constexpr int transposed(int lane, int row, int depth) {
    const int in_row = lane / 4;
    return place(depth + lane % 4, row / kVectorSize<T> + in_row / kVectorSize<T>) + in_row % kVectorSize<T>;
  }

 private:
  static constexpr int place_in_block(device::BlockRow at, int row, int depth) {
    return kAlongDepth ? place(row + at.line, depth / kVectorSize<T> + at.vector)
                       : place(depth + at.line, row / kVectorSize<T> + at.vector);
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm
