// Second step of the ladder: 16 x 16 outputs to a block, which loads each number once for 16 threads.
#include "core/cuda/current_stream.h"
#include "core/cuda/launch.h"
#include "kernels/conv/ladder/ladder.h"
#include "kernels/conv/tile/patches.cuh"
#include "kernels/device/dispatch.h"
#include "kernels/device/shared.h"

namespace tandem::kernels::cuda::ladder {
namespace {

constexpr int kSide = 16;

/// Thread (x, y) of a block makes output channel x of pixel y of its tile.
template <typename T>
__global__ void __launch_bounds__(kSide* kSide)
    shared_tile_forward(tile::Patches<T> patches, Matrix<T> weights, MatrixResult<T> result, std::int64_t depth_end) {
  SHARED(float, x_tile, [kSide][kSide]);
  SHARED(float, w_tile, [kSide][kSide + 1]);  // read by columns: one more, and neighbours are in other banks
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kSide + y;
  const std::int64_t first_channel = std::int64_t{blockIdx.y} * kSide;
  const auto patch = patches.row(pixel);
  const auto weight = weights.row(first_channel + y);
  float sum = 0.0f;
  for (std::int64_t depth = 0; depth < depth_end; depth += kSide) {
    x_tile[y][x] = patches.template load<1>(patch, depth + x, depth_end)[0];
    w_tile[y][x] = weights.template load<1>(weight, depth + x, depth_end)[0];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSide; ++k) sum += x_tile[y][k] * w_tile[x][k];
    __syncthreads();
  }
  result.template store<1>(pixel, first_channel + x, {sum});
}

}  // namespace

void shared_tile(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y) {
  device::dispatch(y.dtype(), "conv2d_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.p * g.q, depth = g.r * g.s * g.c;
    const MatrixResult<T> result{.data = y.data<T>(),
                                 .rows = pixels,
                                 .columns = g.k,
                                 .row_stride = g.k,
                                 .bias = data_or_null<T>(epilogue.bias),
                                 .relu = epilogue.relu};
    const dim3 grid(static_cast<unsigned>((pixels + kSide - 1) / kSide),
                    static_cast<unsigned>((g.k + kSide - 1) / kSide));
    launch(shared_tile_forward<T>, {grid, kSide * kSide}, tandem::cuda::current_stream(y),
           tile::Patches<T>{x.data<T>(), tile::TileGeometry(g), pixels}, Matrix<T>{w.data<T>(), g.k, depth, 1}, result,
           depth);
  });
  if (epilogue.mask.defined()) sign_mask(y, epilogue.mask);
}

}  // namespace tandem::kernels::cuda::ladder
