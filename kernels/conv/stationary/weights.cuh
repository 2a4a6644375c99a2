// The weights of a block's output channels in shared memory, tap by tap.
#pragma once

#include "tandem/kernels/conv/stationary/plan.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/swizzle.h"

namespace tandem::kernels::cuda::stationary {

/// As they lie in memory, [columns, taps, channels], or kTransposed, [channels, taps, columns] for the gradient of the
/// input: `ldmatrix` transposes those on their way to registers. Lines of a tap are columns, or channels if
/// kTransposed.
template <typename T, bool kTransposed>
struct Weights {
  const T* weights;
  int taps, channels, columns;

  template <typename Shape>
  static constexpr int kLines = kTransposed ? Shape::kChannels : Shape::kColumns;
  template <typename Shape>
  static constexpr int kVectors = (kTransposed ? Shape::kColumns : Shape::kChannels) / 8;
  template <typename Shape>
  static constexpr int kTapElements = Shape::kChannels * Shape::kColumns;

  /// Starts this thread's copies of the columns from `first_column` on; zeros where there are none.
  template <typename Shape>
  __device__ void copy(int first_column, T* tiles) const {
    const int length = kTransposed ? columns : channels, lines = kTransposed ? channels : columns;
    const int first = kTransposed ? first_column : 0, first_line = kTransposed ? 0 : first_column;
    const int vectors = taps * kLines<Shape> * kVectors<Shape>;
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += Shape::kThreads) {
      const int vector = i % kVectors<Shape>, in_tap = i / kVectors<Shape> % kLines<Shape>;
      const int tap = i / (kVectors<Shape> * kLines<Shape>);
      const int at = first + vector * 8, line = first_line + in_tap;
      const bool inside = at < length && line < lines;
      device::cp_async<16>(tiles + tap * kTapElements<Shape> + device::swizzled<kVectors<Shape>>(in_tap, vector) * 8,
                           weights + (inside ? (line * taps + tap) * length + at : 0), inside ? 16 : 0);
    }
  }

  /// The right operands of two m16n8k16 of a tap: 16 columns, 16 channels.
  template <typename Shape>
  static __device__ void load(std::uint32_t (&first)[2], std::uint32_t (&second)[2], const T* tap, int column,
                              int channel, int lane) {
    std::uint32_t both[4];
    if constexpr (kTransposed) {
      const device::BlockRow at = device::down_then_across(lane);
      device::ldmatrix_x4_trans(both,
                                tap + device::swizzled<kVectors<Shape>>(channel + at.line, column / 8 + at.vector) * 8);
    } else {
      const device::BlockRow at = device::across_then_down(lane);
      device::ldmatrix_x4(both, tap + device::swizzled<kVectors<Shape>>(column + at.line, channel / 8 + at.vector) * 8);
    }
    first[0] = both[0];
    first[1] = both[1];
    second[0] = both[2];
    second[1] = both[3];
  }
};

}  // namespace tandem::kernels::cuda::stationary
