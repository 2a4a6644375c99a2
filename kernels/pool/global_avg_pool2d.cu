// Global average pooling on a GPU. A block takes one image and some of its channels; its threads share out the pixels,
// and their sums meet in shared memory, in order.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"
#include "tandem/kernels/pool/pool_rows.cuh"

namespace tandem::kernels::cuda {

namespace {

using device::Vector;

constexpr int kLanes = 32;  // threads side by side, each with kWidth channels
constexpr int kSlices = 8;  // threads that share out the pixels

template <typename T, int kWidth>
__global__ void image_means(const T* x, std::int64_t images, std::int64_t pixels, int channels, T* y) {
  TANDEM_SHARED(float, sums, [kSlices][kWidth][kLanes]);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, slice = static_cast<int>(threadIdx.x) / kLanes;
  const int c = (static_cast<int>(blockIdx.x) * kLanes + lane) * kWidth;
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    float sum[kWidth] = {};
    if (c < channels) {
      for (std::int64_t pixel = slice; pixel < pixels; pixel += kSlices) {
        const auto values = device::load_vector<kWidth>(x + (image * pixels + pixel) * channels + c);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sum[k] += device::to_float(values[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sums[slice][k][lane] = sum[k];
    __syncthreads();
    if (slice == 0 && c < channels) {
      Vector<T, kWidth> means;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        for (int other = 1; other < kSlices; ++other) sum[k] += sums[other][k][lane];
        means[k] = device::from_float<T>(sum[k] / static_cast<float>(pixels));
      }
      device::store_vector(y + image * channels + c, means);
    }
    __syncthreads();  // the sums are read before the next image's are written
  }
}

template <typename T, int kWidth>
__global__ void spread_means(const T* grad_y, std::int64_t images, int height, int width, int channels, T* grad_x) {
  const float pixels = static_cast<float>(height) * static_cast<float>(width);
  for_each_pixel<kWidth>(images, height, width, channels, [&](std::int64_t n, int h, int w, int c) {
    auto share = device::load_vector<kWidth>(grad_y + n * channels + c);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) share[k] = device::from_float<T>(device::to_float(share[k]) / pixels);
    device::store_vector(grad_x + (n * height + h) * width * channels + w * channels + c, share);
  });
}

}  // namespace

void global_avg_pool2d_forward(const Tensor& x, const Out& y) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y);
  device::dispatch(x.dtype(), "global_avg_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = in.data<T>();
    T* const to = out.dense().data<T>();
    const auto run = [&](auto width) {
      const auto tiles = static_cast<unsigned>((x.size(1) / width + kLanes - 1) / kLanes);
      const dim3 grid(tiles, static_cast<unsigned>(std::min(x.size(0), kMostLines)));
      launch(image_means<T, width>, {grid, kLanes * kSlices}, tandem::cuda::current_stream(x), from, x.size(0),
             x.size(2) * x.size(3), static_cast<int>(x.size(1)), to);
    };
    dispatch_width<T>(x.size(1), run, from, to);
  });
  out.finish();
}

void global_avg_pool2d_backward(const Tensor& grad_y, const Out& grad_x) {
  const Tensor gradient = dense_input(grad_y);
  const DenseOutput out(grad_x);
  const PoolShape shape = make_pool_shape(grad_x.shape(), grad_y.shape(), {});
  device::dispatch(grad_x.dtype(), "global_avg_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = gradient.data<T>();
    T* const to = out.dense().data<T>();
    const auto run = [&](auto width) {
      const PixelGrid grid(grad_x.size(0), grad_x.size(2), grad_x.size(3), grad_x.size(1) / width);
      launch(spread_means<T, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(grad_x), from, shape.images,
             shape.rows.size, shape.columns.size, shape.channels, to);
    };
    dispatch_width<T>(grad_x.size(1), run, from, to);
  });
  out.finish();
}

}  // namespace tandem::kernels::cuda
