// Weights [K, R, S, C] as the right operand of the input's gradient: a column is an input channel, depth runs through
// the taps of a phase (tile/input_phase.cuh) and, within them, output channels. Neighbours in memory are neighbouring
// columns, so the matrix is transposed on its way from shared memory to registers, and never copied.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/odometer.h"
#include "tandem/kernels/conv/implicit_gemm/shared_tile.cuh"
#include "tandem/kernels/conv/tile/input_phase.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// Tap number t of an axis of a phase is tap first + t * step of the kernel.
struct TapAxis {
  int taps, first, step;

  explicit TapAxis(const tile::PhaseAxis& axis) : taps(axis.taps), first(axis.first_tap), step(axis.tap_step) {}
};

template <typename T>
struct TransposedWeights {
  static constexpr bool kAlongDepth = false;

  const T* weights;
  TapAxis down, across;
  int columns, kernel_taps, kernel_columns;
  Odometer of_depth;  // output channel, tap across, tap down

  TransposedWeights(const T* data, const tile::InputPhase& phase, std::int64_t output_channels)
      : weights(data),
        down(phase.rows),
        across(phase.columns),
        columns(phase.channels),
        kernel_taps(phase.kernel_taps),
        kernel_columns(phase.kernel_columns),
        of_depth(output_channels, std::max(across.taps, 1), kStepDepth<T>) {}

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<T, kSize, false, kThreads>;

   public:
    __device__ Loader(const TransposedWeights& operand, int first_column, int first_depth)
        : operand_(operand), column_(first_column + Share::vector() * kVectorSize<T>) {
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i)
        depths_[i] = operand.of_depth.digits(first_depth + Share::line() + i * Share::kLinesAtOnce);
    }

    __device__ void copy(T* tile) {
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const bool inside = column_ < operand_.columns && depths_[i].outer < operand_.down.taps;
        device::cp_async<16>(tile + Share::place(i), operand_.weights + (inside ? offset(depths_[i]) : 0),
                             inside ? 16 : 0);
        operand_.of_depth.advance(depths_[i]);
      }
    }

   private:
    __device__ int offset(const Digits& depth) const {
      const int r = operand_.down.first + depth.outer * operand_.down.step;
      const int s = operand_.across.first + depth.middle * operand_.across.step;
      const int tap = depth.inner * operand_.kernel_taps + r * operand_.kernel_columns + s;
      return tap * operand_.columns + column_;
    }

    const TransposedWeights& operand_;
    Digits depths_[Share::kTurns];
    int column_;
  };
};

}  // namespace tandem::kernels::cuda::implicit_gemm
