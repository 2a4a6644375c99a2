// A dense matrix as an operand: weights in the forward pass, the gradient of y in that of the weights.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/shared_tile.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// Neighbours in memory are neighbours in depth (kDepthIsAdjacent), or in rows, which for a right operand are columns
/// of the product. The adjacent one of `rows` and `depth` is a multiple of 8.
template <typename T, bool kDepthIsAdjacent>
struct DenseOperand {
  static constexpr bool kAlongDepth = kDepthIsAdjacent;

  const T* data;
  int rows, depth;

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<T, kSize, kAlongDepth, kThreads>;

   public:
    __device__ Loader(const DenseOperand& operand, int first_row, int first_depth)
        : operand_(operand),
          adjacent_((kAlongDepth ? first_depth : first_row) + Share::vector() * kVectorSize<T>),
          line_((kAlongDepth ? first_row : first_depth) + Share::line()) {}

    __device__ void copy(T* tile) {
      const int length = kAlongDepth ? operand_.depth : operand_.rows;
      const int lines = kAlongDepth ? operand_.rows : operand_.depth;
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const int line = line_ + i * Share::kLinesAtOnce;
        const bool inside = adjacent_ < length && line < lines;
        device::cp_async<16>(tile + Share::place(i), operand_.data + (inside ? line * length + adjacent_ : 0),
                             inside ? 16 : 0);
      }
      (kAlongDepth ? adjacent_ : line_) += kStepDepth<T>;
    }

   private:
    const DenseOperand& operand_;
    int adjacent_, line_;
  };
};

}  // namespace tandem::kernels::cuda::implicit_gemm
