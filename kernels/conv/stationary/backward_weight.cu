// The weights' gradient of few channels: its sums stay in registers while a block goes from tile to tile, and each
// tile's halo and gradient are fetched once for all taps. Parts of the sums, one per block, are added in order by later
// blocks of the launch.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/implicit_gemm/patch_axis.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/stationary/halo.cuh"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/add_parts.cuh"

namespace tandem::kernels::cuda::stationary {
namespace {

/// A warp's sums: for each tap kWarpRows output channels by 8 input channels.
template <typename Shape>
struct WeightAccumulators {
  static constexpr int kMmaRows = Shape::kWarpRows / 16;
  float value[kMostWeightTaps][kMmaRows][4] = {};
};

/// Where a warp's sums stand among a block's.
template <typename Shape>
struct WeightPlace {
  int lane, row, channel;

  __device__ WeightPlace() {
    const int warp = static_cast<int>(threadIdx.x) / device::kWarpThreads;
    lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
    row = warp / Shape::kWarpsAcross * Shape::kWarpRows;
    channel = warp % Shape::kWarpsAcross * 8;
  }
};

/// Adds the products of one tile: a line of 16 pixels is the depth of an instruction.
template <typename T, typename Shape>
__device__ void add_tile(const HaloTaps& halo_taps, const T* halo, const T* gradient, const WeightPlace<Shape>& at,
                         WeightAccumulators<Shape>& accumulators) {
  constexpr int kMmaRows = WeightAccumulators<Shape>::kMmaRows;
  const int taps = halo_taps.down * halo_taps.across;
  const device::BlockRow in_gradient = device::across_then_down(at.lane);
#pragma unroll 1
  for (int line = 0; line < Shape::kLines; ++line) {
    std::uint32_t left[kMmaRows][4];
#pragma unroll
    for (int i = 0; i < kMmaRows; ++i)
      device::ldmatrix_x4_trans(left[i],
                                gradient + halo_place<Shape::kOutputs>(line * kTileColumns + in_gradient.line,
                                                                       (at.row + i * 16) / 8 + in_gradient.vector));
    const auto add = [&](int tap, const std::uint32_t(&right)[2]) {
#pragma unroll
      for (int i = 0; i < kMmaRows; ++i) implicit_gemm::Halves<T>::multiply(accumulators.value[tap][i], left[i], right);
    };
    TapWalk walk(halo_taps, line * halo_taps.pitch + at.lane % 16);
    if (at.lane >= 16) walk.advance();  // half of the warp fetches for the next tap
    std::uint32_t both[2][4];           // of two taps; those of the next two are fetched before these are multiplied
    const auto fetch = [&](std::uint32_t(&registers)[4]) {
      device::ldmatrix_x4_trans(registers, halo + halo_place<Shape::kChannels>(walk.pixel(), at.channel / 8));
      walk.advance();
      walk.advance();
    };
    fetch(both[0]);
#pragma unroll
    for (int tap = 0; tap < kMostWeightTaps; tap += 2) {
      if (tap >= taps) continue;
      const std::uint32_t(&now)[4] = both[tap / 2 % 2];
      if (tap + 2 < kMostWeightTaps) fetch(both[(tap / 2 + 1) % 2]);  // past the end the last tap again
      add(tap, {now[0], now[1]});
      if (tap + 1 < kMostWeightTaps && tap + 1 < taps) add(tap + 1, {now[2], now[3]});
    }
  }
}

/// Block i takes the i-th run of `part_tiles` tiles, and leaves its sums in the i-th of `parts`, [K, R, S, C] each.
/// Behind one for each part come those that add the parts.
template <typename T, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksAtOnce)
    stationary_conv_weight(HaloImages<T> images, HaloImages<T> gradients, TileGrid grid, int part_tiles,
                           int halo_elements, device::Phases phases, float* parts, PartsOfElements<T> added) {
  TANDEM_DYNAMIC_SHARED(T, shared);
  const unsigned turn = phases.begin(), part_count = static_cast<unsigned>(added.count);
  if (turn >= part_count) {
    phases.await_last(part_count, gridDim.x - part_count);
    return added.add(turn - part_count, gridDim.x - part_count);
  }
  const int buffer_elements = halo_elements + Shape::kPixels * Shape::kOutputs;
  const WeightPlace<Shape> at;
  const int begin = static_cast<int>(turn) * part_tiles;
  const int end = begin + part_tiles < grid.tiles ? begin + part_tiles : grid.tiles;
  const auto fetch = [&](int tile, T* buffer) {
    if (tile < end) {
      const TilePlace place = grid.place(tile);
      images.template copy<Shape::kChannels, Shape::kThreads>(place, buffer);
      gradients.template copy<Shape::kOutputs, Shape::kThreads>(place, buffer + halo_elements);
    }
    device::cp_async_commit();  // also where there is nothing to copy: waits count groups
  };
  WeightAccumulators<Shape> accumulators;
  int buffer = 0;
  fetch(begin, shared);
  for (int tile = begin; tile < end; ++tile, buffer ^= 1) {
    const T* const halo = shared + buffer * buffer_elements;
    fetch(tile + 1, shared + (buffer ^ 1) * buffer_elements);
    device::cp_async_wait<1>();
    __syncthreads();
    add_tile<T, Shape>(images.taps, halo, halo + halo_elements, at, accumulators);
    __syncthreads();  // used up: the next but one tile may come
  }
  device::cp_async_wait<0>();

  const int taps = images.taps.down * images.taps.across, row_elements = taps * images.channels;
  float* const part = parts + std::int64_t{turn} * gradients.channels * row_elements;
  const int channel = at.channel + device::sum_column(at.lane);
  const int row_end = channel < images.channels ? gradients.channels : 0;
#pragma unroll
  for (int i = 0; i < WeightAccumulators<Shape>::kMmaRows * 2; ++i) {
    const int row = at.row + i * 8 + device::sum_row(at.lane);
    float* to = part + row * row_elements + channel;
#pragma unroll
    for (int tap = 0; tap < kMostWeightTaps; ++tap, to += images.channels) {
      const float* const pair = accumulators.value[tap][i / 2] + i % 2 * 2;
      if (tap < taps && row < row_end) device::store_vector(to, device::Vector<float, 2>{pair[0], pair[1]});
    }
  }
  phases.finish();
}

template <typename T>
void run(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Out& grad_w) {
  const WeightParts plan(g);
  const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
  const MemoryTagScope tag(MemoryTag::workspace);
  const Out parts(Tensor::empty({plan.parts, g.weight_numel()}, {.device = grad_w.device()}));
  const PartsOfElements<T> added(grad_w, parts);
  const auto own = [](std::int64_t size) {  // a pixel of the gradient meets itself alone
    return PatchAxis{static_cast<int>(size), static_cast<int>(size), 1, 1, 0, 1};
  };
  with_weight_shape(g.c, g.k, [&]<typename Shape>(Shape) {
    const HaloImages<T> images(x.data<T>(), implicit_gemm::patches_down(g), implicit_gemm::patches_across(g), g.c,
                               plan.halo);
    const HaloImages<T> gradients(grad_y.data<T>(), own(g.p), own(g.q), g.k,
                                  HaloExtent(own(g.p), own(g.q), Shape::kLines));
    launch(stationary_conv_weight<T, Shape>,
           {static_cast<unsigned>(plan.parts) + added.blocks(Shape::kThreads), Shape::kThreads,
            static_cast<std::size_t>(plan.shared_bytes())},
           stream, images, gradients, TileGrid(g.n, g.p, g.q, Shape::kLines), static_cast<int>(plan.part_tiles),
           static_cast<int>(plan.halo_elements), device::Phases(stream), parts.data<float>(), added);
  });
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

}  // namespace tandem::kernels::cuda::stationary
