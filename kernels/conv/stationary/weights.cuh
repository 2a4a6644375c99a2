// The weights of a block's output channels in shared memory, tap by tap.
#pragma once

#include "kernels/conv/stationary/plan.h"
#include "kernels/device/atoms.h"
#include "kernels/device/fragments.h"
#include "kernels/device/swizzle.h"

namespace tandem::kernels::cuda::stationary {

/// As they lie in memory, [columns, taps, channels], or kTurned, [channels, taps, columns] for the gradient of the
/// input: `ldmatrix` turns those on their way to registers. Lines of a tap are columns, or channels if kTurned.
template <typename T, bool kTurned>
struct Weights {
  const T* weights;
  int taps, channels, columns;

  template <typename Shape>
  static constexpr int kLines = kTurned ? Shape::kChannels : Shape::kColumns;
  template <typename Shape>
  static constexpr int kPieces = (kTurned ? Shape::kColumns : Shape::kChannels) / 8;
  template <typename Shape>
  static constexpr int kTapElements = Shape::kChannels* Shape::kColumns;

  /// Starts this thread's copies of the columns from `first_column` on; zeros where there are none.
  template <typename Shape>
  __device__ void copy(int first_column, T* tiles) const {
    const int length = kTurned ? columns : channels, lines = kTurned ? channels : columns;
    const int first = kTurned ? first_column : 0, first_line = kTurned ? 0 : first_column;
    const int pieces = taps * kLines<Shape> * kPieces<Shape>;
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += Shape::kThreads) {
      const int piece = i % kPieces<Shape>, in_tap = i / kPieces<Shape> % kLines<Shape>;
      const int tap = i / (kPieces<Shape> * kLines<Shape>);
      const int at = first + piece * 8, line = first_line + in_tap;
      const bool inside = at < length && line < lines;
      device::cp_async<16>(tiles + tap * kTapElements<Shape> + device::swizzled<kPieces<Shape>>(in_tap, piece) * 8,
                           weights + (inside ? (line * taps + tap) * length + at : 0), inside ? 16 : 0);
    }
  }

  /// The right operands of two m16n8k16 of a tap: 16 columns, 16 channels.
  template <typename Shape>
  static __device__ void load(std::uint32_t (&first)[2], std::uint32_t (&second)[2], const T* tap, int column,
                              int channel, int lane) {
    std::uint32_t both[4];
    if constexpr (kTurned) {
      const device::BlockRow at = device::down_then_across(lane);
      device::ldmatrix_x4_trans(both,
                                tap + device::swizzled<kPieces<Shape>>(channel + at.line, column / 8 + at.piece) * 8);
    } else {
      const device::BlockRow at = device::across_then_down(lane);
      device::ldmatrix_x4(both, tap + device::swizzled<kPieces<Shape>>(column + at.line, channel / 8 + at.piece) * 8);
    }
    first[0] = both[0];
    first[1] = both[1];
    second[0] = both[2];
    second[1] = both[3];
  }
};

}  // namespace tandem::kernels::cuda::stationary
