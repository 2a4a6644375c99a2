// The main loop of the tensor-core convolutions: copies of later steps are under way while a step is multiplied.
//
// A loader brings one operand, step by step:
//
//   static constexpr bool kAlongDepth;                    how its tiles lie (TileLayout)
//   template <int kSize, int kThreads> class Loader {     of a tile of kSize rows
//     Loader(const Operand&, int first_row, int first_depth);
//     void copy(T* tile);                                 starts this thread's copies of a step, and moves on to the
//     next
//   };
#pragma once

#include "kernels/conv/implicit_gemm/numbers.cuh"
#include "kernels/conv/implicit_gemm/shared_tile.cuh"
#include "kernels/device/reduce.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// Where this thread's warp and lane are.
template <typename Shape>
struct WarpPlace {
  int lane, row, column;  // first row and column of the warp's tile in the block's

  __device__ WarpPlace() {
    const int warp = static_cast<int>(threadIdx.x) / device::kWarpThreads;
    lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
    row = warp / Shape::kWarpsAcross * Shape::kWarpRows;
    column = warp % Shape::kWarpsAcross * Shape::kWarpColumns;
  }
};

/// This thread's share of its warp's sums, by blocks of 16 x 8.
template <typename Shape>
struct Sums {
  static_assert(Shape::kWarpRows % 16 == 0 && Shape::kWarpColumns % 32 == 0);
  static constexpr int kDown = Shape::kWarpRows / 16;
  static constexpr int kAcross = Shape::kWarpColumns / 8;
  float of[kDown][kAcross][4] = {};
};

/// A warp's operands for one instruction in depth, in registers.
template <typename Numbers, typename Shape, typename LayoutA, typename LayoutB>
struct Fragments {
  using T = typename Numbers::Element;

  std::uint32_t left[Sums<Shape>::kDown][4];
  std::uint32_t right[Sums<Shape>::kAcross][2];

  __device__ void load(const T* a_tile, const T* b_tile, const WarpPlace<Shape>& at, int depth) {
#pragma unroll
    for (int i = 0; i < Sums<Shape>::kDown; ++i) load_left<LayoutA>(left[i], a_tile, at.row, i * 16, depth, at.lane);
#pragma unroll
    for (int j = 0; j < Sums<Shape>::kAcross; j += 2)
      load_right<LayoutB>(right[j], right[j + 1], b_tile, at.column, j * 8, depth, at.lane);
  }

  __device__ void multiply(Sums<Shape>& sums) const {
#pragma unroll
    for (int i = 0; i < Sums<Shape>::kDown; ++i) {
      const typename Numbers::template Operand<4> of_left(left[i]);
#pragma unroll
      for (int j = 0; j < Sums<Shape>::kAcross; ++j)
        Numbers::multiply(sums.of[i][j], of_left, typename Numbers::template Operand<2>(right[j]));
    }
  }
};

/// One step: the fragments of the next instruction are loaded before the current one is multiplied.
template <typename Numbers, typename Shape, typename LayoutA, typename LayoutB>
__device__ void multiply_step(const typename Numbers::Element* a_tile, const typename Numbers::Element* b_tile,
                              const WarpPlace<Shape>& at, Sums<Shape>& sums) {
  constexpr int kDepth = kStepDepth<typename Numbers::Element>;
  Fragments<Numbers, Shape, LayoutA, LayoutB> fragments[2];
  fragments[0].load(a_tile, b_tile, at, 0);
#pragma unroll
  for (int i = 0; i < kDepth / Numbers::kInstructionDepth; ++i) {
    const int next = (i + 1) * Numbers::kInstructionDepth;
    if (next < kDepth) fragments[(i + 1) % 2].load(a_tile, b_tile, at, next);
    fragments[i % 2].multiply(sums);
  }
}

/// Adds up `steps` steps of the tile from (first_row, first_column) on. `tiles` is Shape::kSharedBytes of shared
/// memory, free for other use when this returns.
template <typename Numbers, typename Shape, typename A, typename B>
__device__ void sum_up(const A& a, const B& b, int first_row, int first_column, int first_step, int steps,
                       typename Numbers::Element* tiles, const WarpPlace<Shape>& at, Sums<Shape>& sums) {
  using T = typename Numbers::Element;
  using LayoutA = TileLayout<T, Shape::kRows, A::kAlongDepth>;
  using LayoutB = TileLayout<T, Shape::kColumns, B::kAlongDepth>;
  constexpr int kOffsetOfB = Shape::kRows * kStepDepth<T>;
  constexpr int kStageElements = Shape::kStageBytes / static_cast<int>(sizeof(T));
  const int first_depth = first_step * kStepDepth<T>;
  typename A::template Loader<Shape::kRows, Shape::kThreads> from_a(a, first_row, first_depth);
  typename B::template Loader<Shape::kColumns, Shape::kThreads> from_b(b, first_column, first_depth);
  const auto tile_of = [&](int step) { return tiles + step % Shape::kStages * kStageElements; };
  const auto fetch = [&](int step) {
    if (step < steps) {
      from_a.copy(tile_of(step));
      from_b.copy(tile_of(step) + kOffsetOfB);
    }
    device::cp_async_commit();  // also where there is nothing to copy: waits count groups
  };

#pragma unroll
  for (int step = 0; step < Shape::kStages - 1; ++step) fetch(step);
  for (int step = 0; step < steps; ++step) {
    device::cp_async_wait<Shape::kStages - 2>();
    __syncthreads();                   // everybody's copies of this step are there, and the step before is used up:
    fetch(step + Shape::kStages - 1);  // its place takes a new one
    multiply_step<Numbers, Shape, LayoutA, LayoutB>(tile_of(step), tile_of(step) + kOffsetOfB, at, sums);
  }
  device::cp_async_wait<0>();
  __syncthreads();
}

}  // namespace tandem::kernels::cuda::implicit_gemm
