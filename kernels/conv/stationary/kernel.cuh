// The kernel behind these convolutions, and its launch. While a tile is multiplied, the halo of the block's next one
// arrives in the other of two buffers; results go through the buffer whose halo is used up.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/device_limits.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/implicit_gemm/pixel_tile_writer.cuh"
#include "tandem/kernels/conv/stationary/halo.cuh"
#include "tandem/kernels/conv/stationary/weights.cuh"
#include "tandem/kernels/device/shared.h"

namespace tandem::kernels::cuda::stationary {

using implicit_gemm::Accumulators;
using implicit_gemm::PixelTileWriter;
using implicit_gemm::WarpPlace;

/// A warp's operands for one instruction in depth, in registers.
template <typename T, typename Shape, bool kTransposed>
struct Fragments {
  static constexpr int kMmaRows = Accumulators<Shape>::kMmaRows, kMmaColumns = Accumulators<Shape>::kMmaColumns;

  std::uint32_t left[kMmaRows][4], right[kMmaColumns][2];

  /// `pixels` are the lane's rows as they lie in the halo, `tap` what is added to them.
  __device__ void load(const T* halo, const int (&pixels)[kMmaRows], int tap, const T* weights, int channel, int lane) {
#pragma unroll
    for (int i = 0; i < kMmaRows; ++i)
      device::ldmatrix_x4(left[i], halo + halo_place<Shape::kChannels>(
                                              pixels[i] + tap, channel / 8 + device::down_then_across(lane).vector));
#pragma unroll
    for (int j = 0; j < kMmaColumns; j += 2)
      Weights<T, kTransposed>::template load<Shape>(right[j], right[j + 1], weights, j * 8, channel, lane);
  }

  __device__ void multiply(Accumulators<Shape>& accumulators) const {
#pragma unroll
    for (int i = 0; i < kMmaRows; ++i)
#pragma unroll
      for (int j = 0; j < kMmaColumns; ++j)
        implicit_gemm::Halves<T>::multiply(accumulators.value[i][j], left[i], right[j]);
  }
};

/// Adds up one tile whose halo is there: tap by tap, and within a tap 16 channels at a time. The fragments of the next
/// instruction are loaded before the current one is multiplied.
template <typename T, typename Shape, bool kTransposed>
__device__ void multiply_tile(const HaloTaps& halo_taps, const T* halo, const T* weights,
                              const int (&pixels)[Accumulators<Shape>::kMmaRows], int lane,
                              Accumulators<Shape>& accumulators) {
  constexpr int kSteps = Shape::kChannels / 16;
  static_assert(kSteps % 2 == 0, "the first fragments of each tap are the same ones");
  Fragments<T, Shape, kTransposed> fragments[2];
  const int taps = halo_taps.down * halo_taps.across;
  TapWalk walk(halo_taps, 0);
  fragments[0].load(halo, pixels, walk.pixel(), weights, 0, lane);
  for (int i = 0; i < taps; ++i) {
    const int tap = walk.pixel();
    walk.advance();
    const T* const tap_weights = weights + i * Weights<T, kTransposed>::template kTapElements<Shape>;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        fragments[(step + 1) % 2].load(halo, pixels, tap, tap_weights, (step + 1) * 16, lane);
      } else if (i + 1 < taps) {
        fragments[0].load(halo, pixels, walk.pixel(),
                          tap_weights + Weights<T, kTransposed>::template kTapElements<Shape>, 0, lane);
      }
      fragments[step % 2].multiply(accumulators);
    }
  }
}

/// Each block keeps the weights of its columns, blockIdx.y's, and takes every gridDim.x-th tile. `TileWriter` says what
/// becomes of a tile: write_tile(accumulators, at, grid, tile, first_column, buffer), after which the buffer's content
/// is used up.
template <typename T, typename Shape, int kWindow, bool kTransposed, typename TileWriter>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksAtOnce)
    stationary_conv(HaloImages<T> images, Weights<T, kTransposed> weights, TileGrid grid, TileWriter writer,
                    int weight_elements, int buffer_elements) {
  TANDEM_DYNAMIC_SHARED(T, shared);
  T* const halos = shared + weight_elements;
  const WarpPlace<Shape> at;
  const int first_column = static_cast<int>(blockIdx.y) * Shape::kColumns;
  int pixels[Accumulators<Shape>::kMmaRows];
#pragma unroll
  for (int i = 0; i < Accumulators<Shape>::kMmaRows; ++i) {
    const TilePixel<kWindow> pixel(at.row + i * 16 + device::down_then_across(at.lane).line);
    pixels[i] = pixel.line * images.taps.pitch + pixel.column;
  }
  const auto fetch = [&](int tile, T* halo) {
    if (tile < grid.tiles) images.template copy<Shape::kChannels, Shape::kThreads>(grid.place(tile), halo);
    device::cp_async_commit();  // also where there is nothing to copy: waits count groups
  };

  const int step = static_cast<int>(gridDim.x);
  int tile = static_cast<int>(blockIdx.x), buffer = 0;
  weights.template copy<Shape>(first_column, shared);
  fetch(tile, halos);
  for (; tile < grid.tiles; tile += step, buffer ^= 1) {
    T* const halo = halos + buffer * buffer_elements;
    fetch(tile + step, halos + (buffer ^ 1) * buffer_elements);
    device::cp_async_wait<1>();
    __syncthreads();
    Accumulators<Shape> accumulators;
    multiply_tile<T, Shape, kTransposed>(images.taps, halo, shared, pixels, at.lane, accumulators);
    __syncthreads();
    writer.write_tile(accumulators, at, grid, tile, first_column, halo);
    __syncthreads();  // the results have left: the next but one halo may come
  }
  device::cp_async_wait<0>();
}

/// Launches as many blocks as the GPU runs at once, or fewer where there is less to do: how many changes no bit.
template <typename T, typename Shape, int kWindow, bool kTransposed, typename TileWriter>
void launch_shape(const Task& task, const Plan& plan, const T* images, const T* weights, const TileWriter& writer,
                  Device device) {
  const tandem::cuda::DeviceLimits limits = tandem::cuda::device_limits(device);
  const std::int64_t column_tiles = (task.columns + Shape::kColumns - 1) / Shape::kColumns;
  // A multiprocessor has as much for the system as one block has, and every block takes that of it.
  constexpr std::int64_t kOfSystem = 1024;
  const std::int64_t fit = std::clamp<std::int64_t>(
      (limits.shared_bytes + kOfSystem) / (plan.shared_bytes() + kOfSystem), 1, Shape::kBlocksAtOnce);
  const std::int64_t at_once = (limits.multiprocessors * fit + column_tiles - 1) / column_tiles;
  const TileGrid grid(task.images, task.lines(), task.line(), Shape::kLines);
  const dim3 blocks(static_cast<unsigned>(std::min<std::int64_t>(grid.tiles, at_once)),
                    static_cast<unsigned>(column_tiles));
  launch(stationary_conv<T, Shape, kWindow, kTransposed, TileWriter>,
         {blocks, Shape::kThreads, static_cast<std::size_t>(plan.shared_bytes())}, tandem::cuda::current_stream(device),
         HaloImages<T>(images, task.down, task.across, task.channels, plan.halo),
         Weights<T, kTransposed>{weights, static_cast<int>(task.taps()), static_cast<int>(task.channels),
                                 static_cast<int>(task.columns)},
         grid, writer, static_cast<int>(plan.weight_elements), static_cast<int>(plan.buffer_elements));
}

template <typename T, int kWindow, bool kTransposed, typename TileWriter>
void launch_task(const Task& task, const Plan& plan, const T* images, const T* weights, const TileWriter& writer,
                 Device device) {
  with_shape(task.channels, task.columns, [&]<typename Shape>(Shape) {
    launch_shape<T, Shape, kWindow, kTransposed>(task, plan, images, weights, writer, device);
  });
}

}  // namespace tandem::kernels::cuda::stationary
