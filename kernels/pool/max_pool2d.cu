// Max pooling on a GPU. Backward: where windows lie side by side, each thread writes the pixels of one window, having
// read its gradient once. Else it gathers: each pixel asks the windows over it whether it won them. In both no two
// threads write one element, and the order of additions is fixed.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/gemm/column_sum.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tandem/kernels/pool/pool_rows.cuh"

#include <algorithm>
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

template <typename T, typename Index>
struct Pooled {
  const T* gradient;
  const Index* winners;
};

/// What the pixel at row h and column w of image n gets, in the channels from c on: of the windows over it, those that
/// it won.
template <int kWidth, typename T, typename Index>
__device__ Vector<T, kWidth> gathered(const Pooled<T, Index>& from, const PoolShape& shape, std::int64_t n, int h,
                                      int w, int c) {
  const PoolSpan rows = outputs_over(shape.rows, h), columns = outputs_over(shape.columns, w);
  float sum[kWidth] = {};
  for (int i = rows.begin; i < rows.end; ++i) {
    const std::int64_t line = (n * shape.rows.outputs + i) * shape.columns.outputs * shape.channels + c;
    const int row_of_window = h - (i * shape.rows.stride - shape.rows.padding);
    for (int j = columns.begin; j < columns.end; ++j) {
      const int position =
          row_of_window * shape.columns.kernel + w - (j * shape.columns.stride - shape.columns.padding);
      const auto winner = device::load_vector<kWidth>(from.winners + line + j * shape.channels);
      const auto gradient = device::load_vector<kWidth>(from.gradient + line + j * shape.channels);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (static_cast<int>(winner[k]) == position) sum[k] += device::to_float(gradient[k]);
      }
    }
  }
  Vector<T, kWidth> out;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) out[k] = device::from_float<T>(sum[k]);
  return out;
}

__device__ std::int64_t place_of(const PoolShape& shape, std::int64_t n, int h, int w, int c) {
  const int width = shape.columns.size;
  return (n * shape.rows.size + h) * width * shape.channels + w * shape.channels + c;
}

/// Windows that lie side by side from the first pixel on, small enough for a thread. Pixels behind the last whole
/// window are in none.
bool is_tiled(const PoolShape& shape) {
  constexpr int kMostPixels = 16;
  const auto tiles = [](const PoolAxis& axis) { return axis.kernel == axis.stride && axis.padding == 0; };
  return tiles(shape.rows) && tiles(shape.columns) && shape.rows.kernel * shape.columns.kernel <= kMostPixels;
}

/// Windows along an axis, with one of which the image may have a part only.
__host__ __device__ inline int tiles_of(const PoolAxis& axis) { return (axis.size + axis.kernel - 1) / axis.kernel; }

/// Writes what the pixels of a window get, in the channels from c on: its winner the gradient, the others 0.
template <int kWidth, typename T, typename Index>
__device__ void write_tile(const Vector<T, kWidth>& gradient, const Vector<Index, kWidth>& winner,
                           const PoolShape& shape, std::int64_t n, int i, int j, int c, T* grad_x) {
  const int first_row = i * shape.rows.kernel, first_column = j * shape.columns.kernel;
  const int rows = min(shape.rows.kernel, shape.rows.size - first_row);
  const int columns = min(shape.columns.kernel, shape.columns.size - first_column);
  T* line = grad_x + place_of(shape, n, first_row, first_column, c);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int position = row * shape.columns.kernel + column;
      Vector<T, kWidth> out;
#pragma unroll
      for (int k = 0; k < kWidth; ++k)
        out[k] = static_cast<int>(winner[k]) == position ? gradient[k] : device::from_float<T>(0.0f);
      device::store_vector(line + column * shape.channels, out);
    }
    line += shape.columns.size * shape.channels;
  }
}

/// The gradient and the winner of window (i, j), in the channels from c on. The gradient is 0 where there is no such
/// window, and where the winner is none of its pixels, as for a ReLU that let nothing through.
template <int kWidth, typename T, typename Index>
__device__ void read_window(const Pooled<T, Index>& from, const PoolShape& shape, std::int64_t n, int i, int j, int c,
                            Vector<T, kWidth>& gradient, Vector<Index, kWidth>& winner) {
  gradient = {};
  winner = {};
  if (i >= shape.rows.outputs || j >= shape.columns.outputs) return;
  const std::int64_t at =
      (n * shape.rows.outputs + i) * shape.columns.outputs * shape.channels + j * shape.channels + c;
  winner = device::load_vector<kWidth>(from.winners + at);
  gradient = device::load_vector<kWidth>(from.gradient + at);
  const int pixels = shape.rows.kernel * shape.columns.kernel;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const float passed = static_cast<int>(winner[k]) < pixels ? device::to_float(gradient[k]) : 0.0f;
    gradient[k] = device::from_float<T>(0.0f + passed);  // no -0, as in a sum
  }
}

template <typename T, typename Index, int kWidth>
__global__ void max_pool_tile_gradient(Pooled<T, Index> from, PoolShape shape, T* grad_x) {
  const auto visit = [&](std::int64_t n, int i, int j, int c) {
    Vector<T, kWidth> gradient;
    Vector<Index, kWidth> winner;
    read_window(from, shape, n, i, j, c, gradient, winner);
    write_tile(gradient, winner, shape, n, i, j, c, grad_x);
  };
  for_each_pixel<kWidth>(shape.images, tiles_of(shape.rows), tiles_of(shape.columns), shape.channels, visit);
}

template <typename T, typename Index, int kWidth>
__global__ void max_pool_gradient(Pooled<T, Index> from, PoolShape shape, T* grad_x) {
  const auto visit = [&](std::int64_t n, int h, int w, int c) {
    device::store_vector(grad_x + place_of(shape, n, h, w, c), gathered<kWidth>(from, shape, n, h, w, c));
  };
  for_each_pixel<kWidth>(shape.images, shape.rows.size, shape.columns.size, shape.channels, visit);
}

/// What backward visits of an image: its windows where it is tiled, else its pixels.
__host__ __device__ inline int visited(const PoolAxis& axis, bool tiled) { return tiled ? tiles_of(axis) : axis.size; }

/// The launch of max_pool_gradient_and_sums: a block has `across` vectors of channels (blockIdx.x says which) of
/// `lanes` pixels or windows of a row at once; blocks share out the rows (blockIdx.y). Depends on the sizes alone, as
/// the order of sums does.
struct SummingGrid {
  static constexpr std::int64_t kMostParts = 512;  // 4 blocks for each multiprocessor of a large GPU
  int across, lanes;
  dim3 grid;

  SummingGrid(const PoolShape& shape, int width, bool tiled)
      : across(std::min(shape.channels / width, device::kThreadsPerBlock)),
        lanes(std::clamp(device::kThreadsPerBlock / across, 1, visited(shape.columns, tiled))),
        grid(device::blocks_for(shape.channels / width, across),
             static_cast<unsigned>(std::min(shape.images * visited(shape.rows, tiled), kMostParts))) {}
};

/// The same, and parts[blockIdx.y, channel] = the sum of what the block wrote of a channel: each lane adds up its
/// pixels, or the gradients of its windows, then the lanes are added in order.
template <typename T, typename Index, int kWidth, bool kTiled>
__global__ void __launch_bounds__(device::kThreadsPerBlock, 4)
    max_pool_gradient_and_sums(Pooled<T, Index> from, PoolShape shape, int across, int lanes, T* grad_x, float* parts) {
  // Neighbours write neighbouring vectors, and read neighbouring channels: the pitch keeps both out of each other's
  // banks.
  TANDEM_SHARED(float, of_threads, [kWidth][device::kThreadsPerBlock + 32 / kWidth]);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread / across;
  const int c = (static_cast<int>(blockIdx.x) * across + thread % across) * kWidth;
  float sums[kWidth] = {};
  const int rows = visited(shape.rows, kTiled), columns = visited(shape.columns, kTiled);
  for (std::int64_t line = blockIdx.y; c < shape.channels && line < shape.images * rows; line += gridDim.y) {
    const std::int64_t n = line / rows;
    const int h = static_cast<int>(line - n * rows);
    for (int w = lane; w < columns; w += lanes) {
      Vector<T, kWidth> values;
      if constexpr (kTiled) {
        Vector<Index, kWidth> winner;
        read_window(from, shape, n, h, w, c, values, winner);
        write_tile(values, winner, shape, n, h, w, c, grad_x);
      } else {
        values = gathered<kWidth>(from, shape, n, h, w, c);
        device::store_vector(grad_x + place_of(shape, n, h, w, c), values);
      }
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sums[k] += device::to_float(values[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kWidth; ++k) of_threads[k][thread] = sums[k];
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * across * kWidth;
  for (int i = thread; i < across * kWidth && first + i < shape.channels; i += across * lanes) {
    float sum = 0.0f;
    for (int other = 0; other < lanes; ++other) sum += of_threads[i % kWidth][other * across + i / kWidth];
    parts[std::int64_t{blockIdx.y} * shape.channels + first + i] = sum;
  }
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

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y), positions(indices);
  const PoolShape shape = make_pool_shape(x.shape(), y.shape(), options);
  const auto run = [&](auto tag, auto index_tag, auto width) {
    using T = typename decltype(tag)::type;
    using Index = typename decltype(index_tag)::type;
    const PixelGrid grid(y.size(0), y.size(2), y.size(3), y.size(1) / width);
    launch(max_pool<T, Index, width>, {grid.grid, grid.block}, tandem::cuda::current_stream(x), in.data<T>(), shape,
           out.dense().data<T>(), indices.defined() ? positions.dense().data<Index>() : nullptr);
  };
  dispatch_pool("max_pool2d", in, max_pool2d_index_dtype(options), run, out.dense(), positions.dense());
  out.finish();
  positions.finish();
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x,
                         const Out& sums) {
  const Tensor gradient = dense_input(grad_y), positions = dense_input(indices);
  const DenseOutput out(grad_x);
  const PoolShape shape = make_pool_shape(grad_x.shape(), grad_y.shape(), options);
  const cudaStream_t stream = tandem::cuda::current_stream(grad_x);
  const auto run = [&](auto tag, auto index_tag, auto width) {
    using T = typename decltype(tag)::type;
    using Index = typename decltype(index_tag)::type;
    const Pooled<T, Index> from{gradient.data<T>(), positions.data<Index>()};
    T* const to = out.dense().data<T>();
    const bool tiled = is_tiled(shape);
    if (!sums.defined()) {
      const PixelGrid grid(grad_x.size(0), visited(shape.rows, tiled), visited(shape.columns, tiled),
                           grad_x.size(1) / width);
      return launch(tiled ? max_pool_tile_gradient<T, Index, width> : max_pool_gradient<T, Index, width>,
                    {grid.grid, grid.block}, stream, from, shape, to);
    }
    const SummingGrid grid(shape, width, tiled);
    const MemoryTagScope tag_scope(MemoryTag::workspace);
    const Out parts(Tensor::empty({grid.grid.y, shape.channels}, {.device = grad_x.device()}));
    const auto kernel =
        tiled ? max_pool_gradient_and_sums<T, Index, width, true> : max_pool_gradient_and_sums<T, Index, width, false>;
    launch(kernel, {grid.grid, static_cast<unsigned>(grid.across * grid.lanes)}, stream, from, shape, grid.across,
           grid.lanes, to, parts.data<float>());
    column_sum_of_parts(parts, sums);
  };
  dispatch_pool("max_pool2d_backward", gradient, indices.dtype(), run, positions, out.dense());
  out.finish();
}

}  // namespace tandem::kernels::cuda
