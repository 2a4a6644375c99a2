// The weights' gradient by warpgroups: the gradient of y times x, both transposed as they are multiplied, summed up
// over boxes of 64 pixels. Parts of the sums are added in order by later blocks of the launch.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/patch_axis.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/warpgroup/box_grid.cuh"
#include "tandem/kernels/conv/warpgroup/pipeline.cuh"
#include "tandem/kernels/conv/warpgroup/tensor_maps.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/device/warpgroup_layout.h"
#include "tandem/kernels/gemm/add_parts.cuh"

namespace tandem::kernels::cuda::warpgroup {
namespace {

/// Which boxes a block's steps take, and where its sums go. A block has a tile of output channels, a tap and a tile of
/// input channels, the tap fastest, as neighbours then fetch the same gradient; and a part of the boxes.
struct WeightSteps {
  BoxGrid grid;
  int part_boxes;
  unsigned tiles;  // of channels and taps
  int taps_across, taps, channel_tiles;
  int first_line, first_column, step_down, step_across;  // of taps, as seen from an output pixel
  int rows, channels;
  float* parts;  // [parts, K, R, S, C]
};

struct WeightTile {
  int row, tap, channel;  // the first ones

  template <typename Shape>
  static __device__ WeightTile of(const WeightSteps& work, unsigned number) {
    const int tile = static_cast<int>(number), rest = tile / work.taps;
    return {rest / work.channel_tiles * Shape::kRows, tile % work.taps, rest % work.channel_tiles * Shape::kColumns};
  }
};

template <typename Shape>
__device__ void fetch_boxes(const Pipeline<Shape>& pipeline, const CUtensorMap* images, const CUtensorMap* gradients,
                            const WeightSteps& work, const WeightTile& tile, int begin, int end) {
  const int down = work.first_line + tile.tap / work.taps_across * work.step_down;
  const int across = work.first_column + tile.tap % work.taps_across * work.step_across;
  Turn<Shape> turn;
  for (int i = begin; i < end; ++i) {
    Mbarrier& full = pipeline.begin_step(turn);
    const BoxPlace at = work.grid.place(i);
    for (int chunk = 0; chunk < Shape::kRows / device::kLineHalves; ++chunk)
      full.copy_tile(pipeline.left(turn.stage) + chunk * kChunkBytes, gradients, tile.row + chunk * device::kLineHalves,
                     at.column, at.line, at.image);
    for (int chunk = 0; chunk < Shape::kColumns / device::kLineHalves; ++chunk)
      full.copy_tile(pipeline.right(turn.stage) + chunk * kChunkBytes, images,
                     tile.channel + chunk * device::kLineHalves, at.column + across, at.line + down, at.image);
    turn.advance();
  }
}

template <typename Shape>
__device__ void store_sums(const WeightSteps& work, const WeightTile& tile, unsigned part_number,
                           const Accumulators<Shape>& accumulators) {
  const WarpPlace<Shape> at;
  const int row_elements = work.taps * work.channels;
  float* const part = work.parts + (std::int64_t{part_number} * work.rows * work.taps + tile.tap) * work.channels;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = tile.row + at.row + half * 8 + device::sum_row(at.lane);
    if (row >= work.rows) continue;
#pragma unroll
    for (int j = 0; j < Accumulators<Shape>::kMmaColumns; ++j) {
      const int channel = tile.channel + j * 8 + device::sum_column(at.lane);
      const float* const pair = accumulators.value[0][j] + half * 2;
      if (channel < work.channels)
        device::store_vector(part + std::int64_t{row} * row_elements + channel,
                             device::Vector<float, 2>{pair[0], pair[1]});
    }
  }
}

/// A block for each tile and part, the tiles fastest, and behind them those that add the parts.
template <typename T, typename Shape>
__global__ void __launch_bounds__(Shape::kBlockThreads, 1)
    warpgroup_conv_weight(const __grid_constant__ CUtensorMap images, const __grid_constant__ CUtensorMap gradients,
                          WeightSteps work, device::Phases phases, PartsOfElements<T> added) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  const unsigned number = phases.begin(), products = work.tiles * static_cast<unsigned>(added.count);
  if (number >= products) {
    phases.await_last(products, gridDim.x - products);
    return added.add(number - products, gridDim.x - products);
  }
  const Pipeline<Shape> pipeline(shared, gradients, images);
  const WeightTile tile = WeightTile::of<Shape>(work, number % work.tiles);
  const unsigned part = number / work.tiles;
  const int begin = static_cast<int>(part) * work.part_boxes;
  const int end = begin + work.part_boxes < work.grid.boxes ? begin + work.part_boxes : work.grid.boxes;
  if (threadIdx.x >= Shape::kThreads) {
    device::give_registers<kFetchRegisters>();
    if (threadIdx.x == Shape::kThreads) fetch_boxes(pipeline, &images, &gradients, work, tile, begin, end);
  } else {
    device::take_registers<kMultiplyRegisters>();
    Turn<Shape> turn;
    Accumulators<Shape> accumulators;
    run_main_loop<T, Shape, Lines::along_rows, Lines::along_rows>(pipeline, turn, end - begin, accumulators);
    store_sums(work, tile, part, accumulators);
  }
  phases.finish();
}

template <typename T>
void run(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Out& grad_w) {
  const WeightParts plan(g);
  const implicit_gemm::PatchAxis down = implicit_gemm::patches_down(g), across = implicit_gemm::patches_across(g);
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
  const MemoryTagScope tag(MemoryTag::workspace);
  const Out parts(Tensor::empty({plan.parts, g.weight_numel()}, {.device = grad_w.device()}));
  const PartsOfElements<T> added(grad_w, parts);
  const WeightSteps work{.grid = BoxGrid(plan.box, g.n, g.p, g.q),
                         .part_boxes = static_cast<int>(plan.part_boxes),
                         .tiles = static_cast<unsigned>(plan.tiles),
                         .taps_across = across.taps,
                         .taps = down.taps * across.taps,
                         .channel_tiles = static_cast<int>(plan.channel_tiles),
                         .first_line = down.first,
                         .first_column = across.first,
                         .step_down = down.step,
                         .step_across = across.step,
                         .rows = static_cast<int>(g.k),
                         .channels = static_cast<int>(g.c),
                         .parts = parts.data<float>()};
  const auto by = [&]<typename Shape>(Shape) {
    launch(warpgroup_conv_weight<T, Shape>,
           {static_cast<unsigned>(plan.tiles * plan.parts) + added.blocks(Shape::kBlockThreads), Shape::kBlockThreads,
            Shape::kDynamicBytes},
           stream, map_of_images(x, g.n, g.h, g.w, g.c, plan.box), map_of_images(grad_y, g.n, g.p, g.q, g.k, plan.box),
           work, device::Phases(stream), added);
  };
  takes_wide_block(g.c) ? by(WideWeightBlock{}) : by(WeightBlock{});
}

}  // namespace

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  require_no_obstacle("conv2d_backward_weight", obstacle, PassKind::backward_weight, g,
                      operands_of(grad_w.dtype(), x, grad_y, grad_w));
  const Tensor gradient = masked_gradient(grad_y, mask);
  implicit_gemm::dispatch_halves(grad_w.dtype(), "conv2d_backward_weight",
                                 [&]<typename T>(TypeTag<T>) { run<T>(g, x, gradient, grad_w); });
}

}  // namespace tandem::kernels::cuda::warpgroup
