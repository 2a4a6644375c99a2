// Normalisation of rows on a GPU: a warp or a block takes a row, and reads it from memory once and then from the cache.
// Gradients of weight and bias are sums of parts, which a last kernel adds in order.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/device/any_floats.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/divisor.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/norm/row_norm_implementations.h"

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;
using device::kWarpThreads;

constexpr std::int64_t kLongestOfWarp = 128;
constexpr std::int64_t kMostBlocks = 132 * 8;  // as many as a large GPU runs at once
constexpr std::int64_t kMostParts = 256;

/// Rows, and which parameters belong to their columns.
struct Geometry {
  std::int64_t rows, columns, groups, repeats, of_row, parameters;
  device::Divisor by_repeats;

  Geometry(const Tensor& x, const RowNormOptions& options)
      : rows(x.size(0)),
        columns(x.size(1)),
        groups(options.groups),
        repeats(options.repeats),
        of_row(columns / repeats),
        parameters(groups * of_row),
        by_repeats(repeats) {}

  /// Rows that share no parameters.
  std::int64_t images() const { return rows / groups; }

  __device__ std::int64_t first_parameter(std::int64_t row) const { return row % groups * of_row; }
  /// Of a column, counted from the row's first.
  __device__ unsigned parameter(std::int64_t c) const { return by_repeats.divide(static_cast<unsigned>(c)); }
};

/// Weights or biases; null where there are none.
struct Parameters {
  const float* values = nullptr;

  __device__ float load(std::int64_t i, float absent) const { return values == nullptr ? absent : values[i]; }
};

template <typename T, int kRowThreads>
__global__ void row_norm_rows(Geometry g, const T* x, Parameters weight, Parameters bias, float eps, T* y, float* means,
                              float* inverses) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kRowThreads;
  const auto count = static_cast<float>(g.columns);
  const int first = static_cast<int>(threadIdx.x) % kRowThreads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowThreads;
       row < g.rows; row += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    const T* const from = x + row * g.columns;
    T* const to = y + row * g.columns;
    float sum = 0.0f, squares = 0.0f;
    for (std::int64_t c = first; c < g.columns; c += kRowThreads) sum += device::to_float(from[c]);
    const float mean = device::row_sum<kRowThreads>(sum) / count;
    for (std::int64_t c = first; c < g.columns; c += kRowThreads) {
      const float deviation = device::to_float(from[c]) - mean;
      squares += deviation * deviation;
    }
    const float inverse = 1.0f / sqrtf(device::row_sum<kRowThreads>(squares) / count + eps);
    if (first == 0) {
      means[row] = mean;
      inverses[row] = inverse;
    }
    const std::int64_t first_parameter = g.first_parameter(row);
    for (std::int64_t c = first; c < g.columns; c += kRowThreads) {
      const std::int64_t p = first_parameter + g.parameter(c);
      const float normalised = (device::to_float(from[c]) - mean) * inverse;
      to[c] = device::from_float<T>(normalised * weight.load(p, 1.0f) + bias.load(p, 0.0f));
    }
  }
}

/// What gradients are computed from.
template <typename T>
struct Saved {
  const T *x, *grad_y;
  const float *means, *inverses;

  __device__ float normalised(std::int64_t row, std::int64_t at) const {
    return (device::to_float(x[at]) - means[row]) * inverses[row];
  }
};

template <typename T, int kRowThreads>
__global__ void row_norm_gradient_rows(Geometry g, Saved<T> saved, Parameters weight, T* grad_x) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kRowThreads;
  const auto count = static_cast<float>(g.columns);
  const int first = static_cast<int>(threadIdx.x) % kRowThreads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowThreads;
       row < g.rows; row += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    const std::int64_t begin = row * g.columns, first_parameter = g.first_parameter(row);
    // Rounded by itself, not as a part of the sum that it goes into: what is left of it in rows of one value is then 0.
    const auto scaled = [&](std::int64_t c) {
      return __fmul_rn(device::to_float(saved.grad_y[begin + c]), weight.load(first_parameter + g.parameter(c), 1.0f));
    };
    float sum = 0.0f, normalised_sum = 0.0f;
    for (std::int64_t c = first; c < g.columns; c += kRowThreads) {
      const float gradient = scaled(c);
      sum += gradient;
      normalised_sum += gradient * saved.normalised(row, begin + c);
    }
    const float mean = device::row_sum<kRowThreads>(sum) / count,
                slope = device::row_sum<kRowThreads>(normalised_sum) / count;
    for (std::int64_t c = first; c < g.columns; c += kRowThreads) {
      const float gradient = scaled(c) - mean - saved.normalised(row, begin + c) * slope;
      grad_x[begin + c] = device::from_float<T>(saved.inverses[row] * gradient);
    }
  }
}

/// Sums of the parameters' gradients over parts of the images: [parts][2][parameters], weights first.
/// Where each column has parameters of its own, a thread adds up a column of the part.
template <typename T>
__global__ void row_norm_column_parts(Geometry g, Saved<T> saved, std::int64_t images_of_part, float* parts) {
  const std::int64_t p = device::thread_in_grid(), part = blockIdx.y;
  if (p >= g.parameters) return;
  const std::int64_t group = p / g.columns, c = p - group * g.columns, images = g.rows / g.groups;
  const std::int64_t end = min(images, (part + 1) * images_of_part);
  float weight_sum = 0.0f, bias_sum = 0.0f;
  for (std::int64_t image = part * images_of_part; image < end; ++image) {
    const std::int64_t row = image * g.groups + group, at = row * g.columns + c;
    const float gradient = device::to_float(saved.grad_y[at]);
    weight_sum += gradient * saved.normalised(row, at);
    bias_sum += gradient;
  }
  parts[2 * part * g.parameters + p] = weight_sum;
  parts[(2 * part + 1) * g.parameters + p] = bias_sum;
}

/// The same where neighbouring columns share parameters: a warp adds up those of an image that share one, and each
/// image is a part.
template <typename T>
__global__ void row_norm_run_parts(Geometry g, Saved<T> saved, float* parts) {
  constexpr int kWarps = kThreadsPerBlock / kWarpThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const std::int64_t runs = g.rows * g.of_row;
  for (std::int64_t run = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarpThreads; run < runs;
       run += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t row = run / g.of_row, begin = run * g.repeats;
    float weight_sum = 0.0f, bias_sum = 0.0f;
    for (std::int64_t i = lane; i < g.repeats; i += kWarpThreads) {
      const float gradient = device::to_float(saved.grad_y[begin + i]);
      weight_sum += gradient * saved.normalised(row, begin + i);
      bias_sum += gradient;
    }
    weight_sum = device::warp_sum(weight_sum);
    bias_sum = device::warp_sum(bias_sum);
    if (lane != 0) continue;
    const std::int64_t image = run / g.parameters, p = run - image * g.parameters;
    parts[2 * image * g.parameters + p] = weight_sum;
    parts[(2 * image + 1) * g.parameters + p] = bias_sum;
  }
}

__global__ void row_norm_add_parts(const float* parts, std::int64_t count, std::int64_t parameters,
                                   device::AnyFloatsOut grad_weight, device::AnyFloatsOut grad_bias) {
  const std::int64_t p = device::thread_in_grid();
  if (p >= parameters) return;
  double weight_sum = 0.0, bias_sum = 0.0;
  for (std::int64_t part = 0; part < count; ++part) {
    weight_sum += parts[2 * part * parameters + p];
    bias_sum += parts[(2 * part + 1) * parameters + p];
  }
  grad_weight.store(p, weight_sum);
  grad_bias.store(p, bias_sum);
}

/// Blocks for rows of that many threads.
unsigned blocks_of(std::int64_t rows, int row_threads) {
  return device::blocks_for(rows, kThreadsPerBlock / row_threads, kMostBlocks);
}

/// As f32, one after another; undefined where it is.
Tensor as_floats(const Tensor& tensor) {
  if (!tensor.defined() || (tensor.dtype() == DType::f32 && tensor.is_dense(Layout::row_major))) return tensor;
  const Tensor floats = Tensor::empty(tensor.shape(), {.dtype = DType::f32, .device = tensor.device()});
  kernels::cast(tensor, Out(floats));
  return floats;
}

Parameters parameters_of(const Tensor& floats) { return {floats.defined() ? floats.data<float>() : nullptr}; }

void check_columns(std::string_view op, const Tensor& x) {
  require(x.size(1) < (1LL << 31), "{}: rows of {} are too long for a GPU", op, describe(x));
}

template <typename T>
void launch_gradient_rows(const Geometry& g, const Saved<T>& saved, const Tensor& weights, const Out& grad_x) {
  const bool is_short = g.columns <= kLongestOfWarp;
  const auto kernel = is_short ? row_norm_gradient_rows<T, kWarpThreads> : row_norm_gradient_rows<T, kThreadsPerBlock>;
  launch(kernel, {blocks_of(g.rows, is_short ? kWarpThreads : kThreadsPerBlock), kThreadsPerBlock},
         tandem::cuda::current_stream(grad_x), g, saved, parameters_of(weights), grad_x.data<T>());
}

template <typename T>
void launch_parameter_gradients(const Geometry& g, const Saved<T>& saved, Device device, const Out& grad_weight,
                                const Out& grad_bias) {
  const cudaStream_t stream = tandem::cuda::current_stream(device);
  const std::int64_t images_of_part = std::max<std::int64_t>(8, (g.images() + kMostParts - 1) / kMostParts);
  const std::int64_t count = g.repeats == 1 ? (g.images() + images_of_part - 1) / images_of_part : g.images();
  const MemoryTagScope scope(MemoryTag::workspace);
  const Out parts(Tensor::empty({count, 2, g.parameters}, {.dtype = DType::f32, .device = device}));
  const auto blocks = static_cast<unsigned>((g.parameters + kThreadsPerBlock - 1) / kThreadsPerBlock);
  if (g.repeats == 1) {
    launch(row_norm_column_parts<T>, {{blocks, static_cast<unsigned>(count)}, kThreadsPerBlock}, stream, g, saved,
           images_of_part, parts.data<float>());
  } else {
    launch(row_norm_run_parts<T>, {blocks_of(g.rows * g.of_row, kWarpThreads), kThreadsPerBlock}, stream, g, saved,
           parts.data<float>());
  }
  launch(row_norm_add_parts, {blocks, kThreadsPerBlock}, stream, parts.data<float>(), count, g.parameters,
         device::AnyFloatsOut(grad_weight), device::AnyFloatsOut(grad_bias));
}

}  // namespace

void row_norm_forward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const RowNormOptions& options, const Out& y, const Out& mean, const Out& inverse_std) {
  check_columns(op, x);
  const Geometry g(x, options);
  const Tensor weights = as_floats(weight), biases = as_floats(bias);
  device::dispatch(x.dtype(), op, [&]<typename T>(TypeTag<T>) {
    const bool is_short = g.columns <= kLongestOfWarp;
    const auto kernel = is_short ? row_norm_rows<T, kWarpThreads> : row_norm_rows<T, kThreadsPerBlock>;
    launch(kernel, {blocks_of(g.rows, is_short ? kWarpThreads : kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(y), g, x.data<T>(), parameters_of(weights), parameters_of(biases),
           static_cast<float>(options.eps), y.data<T>(), mean.data<float>(), inverse_std.data<float>());
  });
}

void row_norm_backward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_std, const RowNormOptions& options, const Tensor& grad_y,
                       const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  check_columns(op, x);
  const Geometry g(x, options);
  const Tensor weights = as_floats(weight);
  device::dispatch(x.dtype(), op, [&]<typename T>(TypeTag<T>) {
    const Saved<T> saved{x.data<T>(), grad_y.data<T>(), mean.data<float>(), inverse_std.data<float>()};
    if (grad_x.defined()) launch_gradient_rows(g, saved, weights, grad_x);
    if (grad_weight.defined() || grad_bias.defined())
      launch_parameter_gradients(g, saved, x.device(), grad_weight, grad_bias);
  });
}

}  // namespace tandem::kernels::cuda
