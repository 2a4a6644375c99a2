// The main loop of the tensor-core convolutions: copies of later steps are under way while a step is multiplied.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/numbers.cuh"
#include "tandem/kernels/conv/implicit_gemm/shared_tile.cuh"
#include "tandem/kernels/device/reduce.h"

namespace tandem::kernels::cuda::implicit_gemm {

template <typename Operand, int kSize, int kThreads>
using LoaderOf = typename Operand::template Loader<kSize, kThreads>;

/// An operand of the product. Its loader, made from the operand, the first row and the first depth, brings it to shared
/// memory step by step: a tile of kSize rows (of a right operand: columns), kStepDepth<T> deep, each time.
template <typename Operand, typename T, int kSize, int kThreads>
concept TileSource = std::constructible_from<LoaderOf<Operand, kSize, kThreads>, const Operand&, int, int> &&
                     requires(LoaderOf<Operand, kSize, kThreads> loader, T* tile) {
                       { Operand::kAlongDepth } -> std::convertible_to<bool>;  // which way its tiles lie (TileLayout)
                       loader.copy(tile);  // starts this thread's copies of one step, and moves on to the next
                     };

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

/// This thread's share of its warp's part of the result, in the blocks of 16 rows x 8 columns that one instruction adds
/// to. Of each block a lane has rows sum_row(lane) and 8 further, and columns sum_column(lane) and the next.
template <typename Shape>
struct Accumulators {
  static_assert(Shape::kWarpRows % 16 == 0 && Shape::kWarpColumns % 32 == 0);
  static constexpr int kMmaRows = Shape::kWarpRows / 16;
  static constexpr int kMmaColumns = Shape::kWarpColumns / 8;
  float value[kMmaRows][kMmaColumns][4] =
      {};  // (block of 16 rows, block of 8 columns, 2 rows x 2 columns of this lane)
};

/// A warp's operands for one instruction in depth, in registers.
template <typename Numbers, typename Shape, typename LayoutA, typename LayoutB>
struct Fragments {
  using T = typename Numbers::Element;

  std::uint32_t left[Accumulators<Shape>::kMmaRows][4];      // (block of 16 rows, registers of the instruction)
  std::uint32_t right[Accumulators<Shape>::kMmaColumns][2];  // (block of 8 columns, registers)

  __device__ void load(const T* a_tile, const T* b_tile, const WarpPlace<Shape>& at, int depth) {
#pragma unroll
    for (int i = 0; i < Accumulators<Shape>::kMmaRows; ++i)
      load_left<LayoutA>(left[i], a_tile, at.row, i * 16, depth, at.lane);
#pragma unroll
    for (int j = 0; j < Accumulators<Shape>::kMmaColumns; j += 2)
      load_right<LayoutB>(right[j], right[j + 1], b_tile, at.column, j * 8, depth, at.lane);
  }

  __device__ void multiply(Accumulators<Shape>& accumulators) const {
#pragma unroll
    for (int i = 0; i < Accumulators<Shape>::kMmaRows; ++i) {
      const typename Numbers::template Operand<4> of_left(left[i]);
#pragma unroll
      for (int j = 0; j < Accumulators<Shape>::kMmaColumns; ++j)
        Numbers::multiply(accumulators.value[i][j], of_left, typename Numbers::template Operand<2>(right[j]));
    }
  }
};

/// One step: the fragments of the next instruction are loaded before the current one is multiplied.
template <typename Numbers, typename Shape, typename LayoutA, typename LayoutB>
__device__ void multiply_step(const typename Numbers::Element* a_tile, const typename Numbers::Element* b_tile,
                              const WarpPlace<Shape>& at, Accumulators<Shape>& accumulators) {
  constexpr int kDepth = kStepDepth<typename Numbers::Element>;
  Fragments<Numbers, Shape, LayoutA, LayoutB> fragments[2];
  fragments[0].load(a_tile, b_tile, at, 0);
#pragma unroll
  for (int i = 0; i < kDepth / Numbers::kInstructionDepth; ++i) {
    const int next = (i + 1) * Numbers::kInstructionDepth;
    if (next < kDepth) fragments[(i + 1) % 2].load(a_tile, b_tile, at, next);
    fragments[i % 2].multiply(accumulators);
  }
}

/// Adds up `steps` steps of the tile from (first_row, first_column) on. `tiles` is Shape::kSharedBytes of shared
/// memory, free for other use when this returns.
template <TensorCoreNumbers Numbers, typename Shape, typename A, typename B>
  requires TileSource<A, typename Numbers::Element, Shape::kRows, Shape::kThreads> &&
           TileSource<B, typename Numbers::Element, Shape::kColumns, Shape::kThreads>
__device__ void run_main_loop(const A& a, const B& b, int first_row, int first_column, int first_step, int steps,
                              typename Numbers::Element* tiles, const WarpPlace<Shape>& at,
                              Accumulators<Shape>& accumulators) {
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
    multiply_step<Numbers, Shape, LayoutA, LayoutB>(tile_of(step), tile_of(step) + kOffsetOfB, at, accumulators);
  }
  device::cp_async_wait<0>();
  __syncthreads();
}

}  // namespace tandem::kernels::cuda::implicit_gemm
