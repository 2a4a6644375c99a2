// Max pooling on a GPU. Backward gathers: each pixel asks the windows over it whether it won them, so no two threads
// write one element and the order of additions is fixed.
#include "core/cuda/current_stream.h"
#include "core/cuda/launch.h"
#include "kernels/dense_operand.h"
#include "kernels/device/dispatch.h"
#include "kernels/pool/max_pool2d.h"
#include "kernels/pool/pool_rows.cuh"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::Vector;

template <typename T, typename Index, int kWidth>
__global__ void max_pool(const T* x, PoolShape shape, T* y, Index* indices) {
  const int height = shape.rows.outputs, width = shape.columns.outputs;
  for_each_pixel<kWidth>(shape.images, height, width, shape.channels, [&](std::int64_t n, int i, int j, int c) {
    const PoolSpan rows = inputs_of(shape.rows, i), columns = inputs_of(shape.columns, j);
    float best[kWidth];
    int winner[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      best[k] = -INFINITY;
      winner[k] = (rows.begin - rows.first) * shape.columns.kernel + columns.begin - columns.first;
    }
    for (int row = rows.begin; row < rows.end; ++row) {
      const T* const line = x + (n * shape.rows.size + row) * shape.columns.size * shape.channels + c;
      for (int column = columns.begin; column < columns.end; ++column) {
        const auto values = device::load_vector<kWidth>(line + column * shape.channels);
        const int position = (row - rows.first) * shape.columns.kernel + column - columns.first;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          const float value = device::to_float(values[k]);
          if (!(value > best[k]) && value == value) continue;  // NaN wins
          best[k] = value;
          winner[k] = position;
        }
      }
    }
    Vector<T, kWidth> maxima;
    Vector<Index, kWidth> positions;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      maxima[k] = device::from_float<T>(best[k]);
      positions[k] = static_cast<Index>(winner[k]);
    }
    const std::int64_t at = (n * height + i) * width * shape.channels + j * shape.channels + c;
    device::store_vector(y + at, maxima);
    if (indices != nullptr) device::store_vector(indices + at, positions);
  });
}

template <typename T, typename Index, int kWidth>
__global__ void max_pool_gradient(const T* grad_y, const Index* indices, PoolShape shape, T* grad_x) {
  const int height = shape.rows.size, width = shape.columns.size;
  for_each_pixel<kWidth>(shape.images, height, width, shape.channels, [&](std::int64_t n, int h, int w, int c) {
    const PoolSpan rows = outputs_over(shape.rows, h), columns = outputs_over(shape.columns, w);
    float sum[kWidth] = {};
    for (int i = rows.begin; i < rows.end; ++i) {
      const std::int64_t line = (n * shape.rows.outputs + i) * shape.columns.outputs * shape.channels + c;
      const int row_of_window = h - (i * shape.rows.stride - shape.rows.padding);
      for (int j = columns.begin; j < columns.end; ++j) {
        const int position =
            row_of_window * shape.columns.kernel + w - (j * shape.columns.stride - shape.columns.padding);
        const auto winner = device::load_vector<kWidth>(indices + line + j * shape.channels);
        const auto gradient = device::load_vector<kWidth>(grad_y + line + j * shape.channels);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          if (static_cast<int>(winner[k]) == position) sum[k] += device::to_float(gradient[k]);
        }
      }
    }
    Vector<T, kWidth> out;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) out[k] = device::from_float<T>(sum[k]);
    device::store_vector(grad_x + (n * height + h) * width * shape.channels + w * shape.channels + c, out);
  });
}

/// Calls visit(TypeTag<T>, TypeTag<Index>, width). i32 indices go with windows so large that vectors gain nothing.
template <typename Visit, typename... Tensors>
void dispatch_pool(std::string_view op, const Tensor& x, DType index_dtype, Visit&& visit, const Tensors&... tensors) {
  device::dispatch(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (index_dtype == DType::i32) return visit(tag, TypeTag<std::int32_t>{}, std::integral_constant<int, 1>{});
    dispatch_width<T>(
        x.size(1), [&](auto width) { visit(tag, TypeTag<std::uint8_t>{}, width); }, x.raw_data(),
        (tensors.defined() ? tensors.raw_data() : nullptr)...);
  });
}

}  // namespace

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y), positions(indices);
  const PoolShape shape = make_pool_shape(x.shape(), y.shape(), options);
  const auto run = [&](auto tag, auto index_tag, auto width) {
    using T = typename decltype(tag)::type;
    using Index = typename decltype(index_tag)::type;
    const PixelGrid grid(y.size(0), y.size(2), y.size(3), y.size(1) / width);
    launch(max_pool<T, Index, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(x), in.data<T>(), shape,
           out.tensor().data<T>(), indices.defined() ? positions.tensor().data<Index>() : nullptr);
  };
  dispatch_pool("max_pool2d", in, max_pool2d_index_dtype(options), run, out.tensor(), positions.tensor());
  out.finish();
  positions.finish();
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x) {
  const Tensor gradient = dense_input(grad_y), positions = dense_input(indices);
  const DenseOutput out(grad_x);
  const PoolShape shape = make_pool_shape(grad_x.shape(), grad_y.shape(), options);
  const auto run = [&](auto tag, auto index_tag, auto width) {
    using T = typename decltype(tag)::type;
    using Index = typename decltype(index_tag)::type;
    const PixelGrid grid(grad_x.size(0), grad_x.size(2), grad_x.size(3), grad_x.size(1) / width);
    launch(max_pool_gradient<T, Index, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(grad_x),
           gradient.data<T>(), positions.data<Index>(), shape, out.tensor().data<T>());
  };
  dispatch_pool("max_pool2d_backward", gradient, indices.dtype(), run, positions, out.tensor());
  out.finish();
}

}  // namespace tandem::kernels::cuda
