// Batch normalisation of rows of channels, backward: one pass for the sums over the batch, one for grad_x.
#include "tandem/core/parallel.h"
#include "tandem/kernels/activation/vector_activations.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_rows.h"

namespace tandem::kernels::cpu {

namespace {

using kernels::detail::BlockValues;
using kernels::detail::ChannelRows;
using kernels::detail::ChannelValues;
using kernels::detail::WideTransform;

/// Per channel: sums of the gradient, and of the gradient times x - mean.
struct GradientSums {
  ChannelValues gradient, gradient_times_deviation;
};

void add(std::span<double> sums, std::span<const double> more) {
  for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += more[c];
}

/// The gradient as it comes through the activation.
template <typename Function>
float passed(float gradient, float x, float mean, float scale, float bias) {
  return Function::gradient(WideTransform::apply(x, mean, scale, bias), gradient);
}

/// What chunks are summed up in, one after the other: wide rows, and what they come to by channel.
template <typename T>
struct ChunkSums {
  explicit ChunkSums(const ChannelRows& rows)
      : read_x(rows.width()),
        read_gradient(rows.width()),
        gradient(static_cast<std::size_t>(rows.width())),
        product(gradient.size()),
        by_channel(static_cast<std::size_t>(rows.channels())) {}

  RunReader<T> read_x, read_gradient;
  std::vector<float> gradient, product;
  ChannelValues by_channel;
};

/// Adds those of a block to sums by channel of the gradient and of the gradient times x - mean.
template <typename Function, typename T>
void add_block(const ChannelRows& rows, const WideTransform& transform, const T* x, const T* grad_y, std::int64_t block,
               ChunkSums<T>& chunk, std::span<double> gradient, std::span<double> gradient_times_deviation) {
  const float* const mean = transform.mean.data();
  const float* const scale = transform.scale.data();
  const float* const bias = transform.bias.data();
  rows.for_each_chunk(block, [&](std::int64_t first, std::int64_t count) {
    std::fill(chunk.gradient.begin(), chunk.gradient.end(), 0.0f);
    std::fill(chunk.product.begin(), chunk.product.end(), 0.0f);
    float* __restrict const gradient_sum = chunk.gradient.data();
    float* __restrict const product_sum = chunk.product.data();
    rows.for_each_wide(first, count, [&](std::int64_t offset, std::int64_t length) {
      const float* const values = chunk.read_x(x + offset, length);
      const float* const incoming = chunk.read_gradient(grad_y + offset, length);
      for (std::int64_t i = 0; i < length; ++i) {
        const float value = values[i];
        const float arrived = passed<Function>(incoming[i], value, mean[i], scale[i], bias[i]);
        gradient_sum[i] += arrived;
        product_sum[i] += arrived * (value - mean[i]);
      }
    });
    rows.fold(chunk.gradient, chunk.by_channel);
    add(gradient, chunk.by_channel);
    rows.fold(chunk.product, chunk.by_channel);
    add(gradient_times_deviation, chunk.by_channel);
  });
}

template <typename Function, typename T>
GradientSums sums_of(const ChannelRows& rows, const WideTransform& transform, const T* x, const T* grad_y) {
  BlockValues blocks(rows);
  parallel_for(rows.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    ChunkSums<T> chunk(rows);
    for (std::int64_t block = begin; block < end; ++block) {
      add_block<Function, T>(rows, transform, x, grad_y, block, chunk, blocks.first(block), blocks.second(block));
    }
  });
  const auto channels = static_cast<std::size_t>(rows.channels());
  GradientSums all{ChannelValues(channels), ChannelValues(channels)};
  for (std::int64_t block = 0; block < rows.blocks(); ++block) {
    add(all.gradient, blocks.first(block));
    add(all.gradient_times_deviation, blocks.second(block));
  }
  return all;
}

/// grad_x = (gradient - center - (x - mean) * slope) * scale
template <typename Function, typename T>
void propagate(const ChannelRows& rows, const WideTransform& transform, const std::vector<float>& centers,
               const std::vector<float>& slopes, const T* x, const T* grad_y, T* grad_x) {
  parallel_for(rows.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    const float* const mean = transform.mean.data();
    const float* const scale = transform.scale.data();
    const float* const bias = transform.bias.data();
    const float* const center = centers.data();
    const float* const slope = slopes.data();
    RunReader<T> read_x(rows.width()), read_gradient(rows.width());
    RunWriter<T> write(rows.width());
    const auto row = [&](std::int64_t offset, std::int64_t length) {
      const float* const values = read_x(x + offset, length);
      const float* const incoming = read_gradient(grad_y + offset, length);
      write(grad_x + offset, length, [&](float* __restrict to) {
        for (std::int64_t i = 0; i < length; ++i) {
          const float value = values[i];
          const float gradient = passed<Function>(incoming[i], value, mean[i], scale[i], bias[i]);
          to[i] = (gradient - center[i] - (value - mean[i]) * slope[i]) * scale[i];
        }
      });
    };
    for (std::int64_t block = begin; block < end; ++block) {
      rows.for_each_chunk(block,
                          [&](std::int64_t first, std::int64_t count) { rows.for_each_wide(first, count, row); });
    }
  });
}

}  // namespace

void batch_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& inverse_std, const BatchNormOptions& options, const Tensor& grad_y,
                         const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  const ChannelRows rows(x);
  const ChannelValues inverse = inverse_std.to_vector<double>();
  const WideTransform transform(rows, mean.to_vector<double>(), inverse, weight, bias);
  const auto channels = static_cast<std::size_t>(rows.channels());
  ChannelValues center(channels), slope(channels);
  if (options.training || grad_weight.defined() || grad_bias.defined()) {
    GradientSums sums = dispatch_float(x.dtype(), "batch_norm_backward", [&]<typename T>(TypeTag<T>) {
      return visit_activation(options.activation, [&](auto kind) {
        return sums_of<activations::Of<kind>, T>(rows, transform, x.data<T>(), grad_y.data<T>());
      });
    });
    const double count = static_cast<double>(rows.rows());
    for (std::size_t c = 0; c < channels; ++c) {
      double& product = sums.gradient_times_deviation[c];
      product *= inverse[c];
      if (!options.training) continue;
      center[c] = sums.gradient[c] / count;
      slope[c] = product * inverse[c] / count;
    }
    kernels::detail::store_channels(sums.gradient, grad_bias);
    kernels::detail::store_channels(sums.gradient_times_deviation, grad_weight);
  }
  if (!grad_x.defined()) return;
  dispatch_float(x.dtype(), "batch_norm_backward", [&]<typename T>(TypeTag<T>) {
    visit_activation(options.activation, [&](auto kind) {
      propagate<activations::Of<kind>, T>(rows, transform, rows.widen(center), rows.widen(slope), x.data<T>(),
                                          grad_y.data<T>(), grad_x.data<T>());
    });
  });
}

}  // namespace tandem::kernels::cpu
