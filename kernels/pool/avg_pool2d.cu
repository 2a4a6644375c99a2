// Average pooling on a GPU; backward gathers from the windows over each pixel.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/pool/pool_rows.cuh"

namespace tandem::kernels::cuda {

namespace {

using device::Vector;

template <typename T, int kWidth>
__global__ void avg_pool(const T* x, PoolShape shape, T* y) {
  const int height = shape.rows.outputs, width = shape.columns.outputs;
  for_each_pixel<kWidth>(shape.images, height, width, shape.channels, [&](std::int64_t n, int i, int j, int c) {
    const PoolSpan rows = inputs_of(shape.rows, i), columns = inputs_of(shape.columns, j);
    float sum[kWidth] = {};
    for (int row = rows.begin; row < rows.end; ++row) {
      const T* const line = x + (n * shape.rows.size + row) * shape.columns.size * shape.channels + c;
      for (int column = columns.begin; column < columns.end; ++column) {
        const auto values = device::load_vector<kWidth>(line + column * shape.channels);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sum[k] += device::to_float(values[k]);
      }
    }
    const auto divisor = static_cast<float>(counted(shape.rows, rows, shape.count_include_pad) *
                                            counted(shape.columns, columns, shape.count_include_pad));
    Vector<T, kWidth> means;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) means[k] = device::from_float<T>(sum[k] / divisor);
    device::store_vector(y + (n * height + i) * width * shape.channels + j * shape.channels + c, means);
  });
}

template <typename T, int kWidth>
__global__ void avg_pool_gradient(const T* grad_y, PoolShape shape, T* grad_x) {
  const int height = shape.rows.size, width = shape.columns.size;
  for_each_pixel<kWidth>(shape.images, height, width, shape.channels, [&](std::int64_t n, int h, int w, int c) {
    const PoolSpan rows = outputs_over(shape.rows, h), columns = outputs_over(shape.columns, w);
    float sum[kWidth] = {};
    for (int i = rows.begin; i < rows.end; ++i) {
      const std::int64_t line = (n * shape.rows.outputs + i) * shape.columns.outputs * shape.channels + c;
      const int row_count = counted(shape.rows, inputs_of(shape.rows, i), shape.count_include_pad);
      for (int j = columns.begin; j < columns.end; ++j) {
        const int count = row_count * counted(shape.columns, inputs_of(shape.columns, j), shape.count_include_pad);
        const float weight = 1.0f / static_cast<float>(count);
        const auto gradient = device::load_vector<kWidth>(grad_y + line + j * shape.channels);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sum[k] += device::to_float(gradient[k]) * weight;
      }
    }
    Vector<T, kWidth> out;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) out[k] = device::from_float<T>(sum[k]);
    device::store_vector(grad_x + (n * height + h) * width * shape.channels + w * shape.channels + c, out);
  });
}

}  // namespace

void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y);
  const PoolShape shape = make_pool_shape(x.shape(), y.shape(), options);
  device::dispatch(x.dtype(), "avg_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = in.data<T>();
    T* const to = out.dense().data<T>();
    const auto run = [&](auto width) {
      const PixelGrid grid(y.size(0), y.size(2), y.size(3), y.size(1) / width);
      launch(avg_pool<T, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(x), from, shape, to);
    };
    dispatch_width<T>(x.size(1), run, from, to);
  });
  out.finish();
}

void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x) {
  const Tensor gradient = dense_input(grad_y);
  const DenseOutput out(grad_x);
  const PoolShape shape = make_pool_shape(grad_x.shape(), grad_y.shape(), options);
  device::dispatch(grad_x.dtype(), "avg_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = gradient.data<T>();
    T* const to = out.dense().data<T>();
    const auto run = [&](auto width) {
      const PixelGrid grid(grad_x.size(0), grad_x.size(2), grad_x.size(3), grad_x.size(1) / width);
      launch(avg_pool_gradient<T, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(grad_x), from, shape,
             to);
    };
    dispatch_width<T>(grad_x.size(1), run, from, to);
  });
  out.finish();
}

}  // namespace tandem::kernels::cuda
