// The kernel behind the forward pass and the gradient of images: boxes of pixels, one tap and 64 channels at a time,
// times weights. Blocks stay, and take one tile after the other: what comes next is fetched while results are stored.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/device_limits.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/implicit_gemm/pixel_tile_writer.cuh"
#include "tandem/kernels/conv/stationary/plan.h"
#include "tandem/kernels/conv/warpgroup/box_grid.cuh"
#include "tandem/kernels/conv/warpgroup/pipeline.cuh"
#include "tandem/kernels/conv/warpgroup/tensor_maps.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/warpgroup_layout.h"

namespace tandem::kernels::cuda::warpgroup {

/// Which boxes and weights a tile's steps take.
struct ImageSteps {
  BoxGrid grid;
  int taps_down, taps_across;
  int first_line, first_column, step_down, step_across;  // of taps, as seen from an output pixel
  int channel_blocks, column_tiles;
  device::Divisor by_column_tiles;

  ImageSteps(const stationary::Task& task, const PixelBox& box, std::int64_t tile_columns)
      : grid(box, task.images, task.lines(), task.line()),
        taps_down(task.down.taps),
        taps_across(task.across.taps),
        first_line(task.down.first),
        first_column(task.across.first),
        step_down(task.down.step),
        step_across(task.across.step),
        channel_blocks(static_cast<int>(tiles_along(task.channels, device::kLineHalves))),
        column_tiles(static_cast<int>(tiles_along(task.columns, tile_columns))),
        by_column_tiles(column_tiles) {}

  __host__ __device__ int tiles() const { return grid.boxes * column_tiles; }
  __device__ int steps() const { return taps_down * taps_across * channel_blocks; }
};

/// Fetches a tile's steps. Transposed weights have input channels as columns: their lines are depths.
template <typename Shape, Lines kWeightLines>
__device__ void fetch_tile(const Pipeline<Shape>& pipeline, const CUtensorMap* images, const CUtensorMap* weights,
                           const ImageSteps& work, const BoxPlace& at, int first_column, Turn<Shape>& turn) {
  for (int r = 0; r < work.taps_down; ++r)
    for (int s = 0; s < work.taps_across; ++s)
      for (int block = 0; block < work.channel_blocks; ++block) {
        Mbarrier& full = pipeline.begin_step(turn);
        const int channel = block * device::kLineHalves;
        full.copy_tile(pipeline.left(turn.stage), images, channel, at.column + work.first_column + s * work.step_across,
                       at.line + work.first_line + r * work.step_down, at.image);
        unsigned char* const to = pipeline.right(turn.stage);
        if constexpr (kWeightLines == Lines::along_depth) {
          full.copy_tile(to, weights, channel, s, r, first_column);
        } else {
          for (int chunk = 0; chunk < Shape::kColumns / device::kLineHalves; ++chunk)
            full.copy_tile(to + chunk * kChunkBytes, weights, first_column + chunk * device::kLineHalves, s, r,
                           channel);
        }
        turn.advance();
      }
}

template <typename T, typename Shape, Lines kWeightLines, typename TileWriter>
__global__ void __launch_bounds__(Shape::kBlockThreads, 1)
    warpgroup_conv(const __grid_constant__ CUtensorMap images, const __grid_constant__ CUtensorMap weights,
                   ImageSteps work, TileWriter writer) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  const Pipeline<Shape> pipeline(shared, images, weights);
  Turn<Shape> turn;
  const int step = static_cast<int>(gridDim.x);
  const auto column_of = [&](int tile) { return tile % work.column_tiles * Shape::kColumns; };
  const auto box_of = [&](int tile) {
    return static_cast<int>(work.by_column_tiles.divide(static_cast<unsigned>(tile)));
  };
  if (threadIdx.x >= Shape::kThreads) {
    device::give_registers<kFetchRegisters>();
    if (threadIdx.x > Shape::kThreads) return;
    for (int tile = static_cast<int>(blockIdx.x); tile < work.tiles(); tile += step)
      fetch_tile<Shape, kWeightLines>(pipeline, &images, &weights, work, work.grid.place(box_of(tile)), column_of(tile),
                                      turn);
    return;
  }
  device::take_registers<kMultiplyRegisters>();
  const WarpPlace<Shape> at;
  for (int tile = static_cast<int>(blockIdx.x); tile < work.tiles(); tile += step) {
    Accumulators<Shape> accumulators;
    run_main_loop<T, Shape, Lines::along_depth, kWeightLines>(pipeline, turn, work.steps(), accumulators);
    writer.write_tile(accumulators, at, work.grid, box_of(tile), column_of(tile),
                      reinterpret_cast<T*>(pipeline.staged()));
    implicit_gemm::sync_tile<Shape>();  // the results have left
  }
}

/// Launches as many blocks as the GPU has multiprocessors, or fewer where there is less to do: how many changes no bit.
template <typename T, typename Shape, Lines kWeightLines, typename TileWriter>
void launch_shape(const stationary::Task& task, const PixelBox& box, const CUtensorMap& images,
                  const CUtensorMap& weights, const TileWriter& writer, Device device) {
  const ImageSteps work(task, box, Shape::kColumns);
  const int blocks = std::min(work.tiles(), tandem::cuda::device_limits(device).multiprocessors);
  launch(warpgroup_conv<T, Shape, kWeightLines, TileWriter>,
         {static_cast<unsigned>(blocks), Shape::kBlockThreads, Shape::kDynamicBytes},
         tandem::cuda::current_stream(device), images, weights, work, writer);
}

/// Box of a task's output pixels.
inline PixelBox box_of(const stationary::Task& task) {
  return choose_box(kImagePixels, task.images, task.lines(), task.line());
}

/// Runs a task: `images` are what taps meet, `w` the weights of `g`, all of T.
template <typename T, Lines kWeightLines, typename TileWriter>
void launch_task(const ConvGeometry& g, const stationary::Task& task, const Tensor& images, const Tensor& w,
                 const TileWriter& writer) {
  const PixelBox box = box_of(task);
  const CUtensorMap image_map =
      map_of_images(images, task.images, task.down.inputs, task.across.inputs, task.channels, box);
  const auto by = [&]<typename Shape>(Shape) {
    const int outputs = kWeightLines == Lines::along_depth ? Shape::kColumns : device::kLineHalves;
    launch_shape<T, Shape, kWeightLines>(task, box, image_map, map_of_weights(w, g, outputs), writer, w.device());
  };
  takes_wide_block(task.columns) ? by(WideImageBlock{}) : by(ImageBlock{});
}

}  // namespace tandem::kernels::cuda::warpgroup
