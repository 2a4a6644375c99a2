// Weights [K, R, S, C] as the right operand of the forward pass: a column is an output channel, depth runs through taps
// and, within them, input channels, as they lie in memory.
#pragma once

#include "kernels/conv/implicit_gemm/shared_tile.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

template <typename T>
struct WeightColumns {
  static constexpr bool kAlongDepth = true;

  const T* weights;
  int columns, depth;

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<TileLayout<kSize, true>, kThreads>;

   public:
    __device__ Loader(const WeightColumns& operand, int first_column, int first_depth)
        : operand_(operand), column_(first_column + Share::line()), depth_(first_depth + Share::piece() * kPiece) {}

    __device__ void copy(T* tile) {
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const int column = column_ + i * Share::kLinesAtOnce;
        const bool inside = depth_ < operand_.depth && column < operand_.columns;
        device::cp_async<16>(tile + Share::place(i), operand_.weights + (inside ? column * operand_.depth + depth_ : 0),
                             inside ? 16 : 0);
      }
      depth_ += kStepDepth;
    }

   private:
    const WeightColumns& operand_;
    int column_, depth_;
  };
};

}  // namespace tandem::kernels::cuda::implicit_gemm
