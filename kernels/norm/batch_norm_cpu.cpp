// Batch normalisation of rows of channels, forward: one pass for the statistics, one to normalise.
#include "tandem/core/parallel.h"
#include "tandem/kernels/activation/vector_activations.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_rows.h"

namespace tandem::kernels::cpu {

namespace {

using kernels::detail::BlockValues;
using kernels::detail::ChannelMoments;
using kernels::detail::ChannelRows;
using kernels::detail::ChannelValues;
using kernels::detail::WideTransform;

/// Moments that lie in memory of somebody else's.
struct Moments {
  std::int64_t count = 0;
  std::span<double> mean, squared_deviations;
};

/// Joins the moments of two sets (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979).
void join(Moments& all, const Moments& more) {
  const auto more_count = static_cast<double>(more.count), count = static_cast<double>(all.count + more.count);
  const double share = more_count / count, old_count = static_cast<double>(all.count);
  for (std::size_t c = 0; c < all.mean.size(); ++c) {
    const double delta = more.mean[c] - all.mean[c];
    all.mean[c] += delta * share;
    all.squared_deviations[c] += more.squared_deviations[c] + delta * delta * old_count * share;
  }
  all.count += more.count;
}

/// What chunks are summed up in, one after the other: wide rows, and what they come to by channel.
template <typename T>
struct ChunkSums {
  explicit ChunkSums(const ChannelRows& rows)
      : read(rows.width()),
        shift(static_cast<std::size_t>(rows.width())),
        sum(shift.size()),
        squares(shift.size()),
        mean(static_cast<std::size_t>(rows.channels())),
        squared_deviations(mean.size()) {}

  Moments moments(std::int64_t count) { return {count, mean, squared_deviations}; }

  RunReader<T> read;
  std::vector<float> shift, sum, squares;
  ChannelValues mean, squared_deviations;
};

/// sums.mean becomes the mean of one chunk.
template <typename T>
void chunk_mean(const ChannelRows& rows, const T* x, std::int64_t first, std::int64_t count, ChunkSums<T>& sums) {
  std::fill(sums.sum.begin(), sums.sum.end(), 0.0f);
  rows.for_each_wide(first, count, [&](std::int64_t offset, std::int64_t length) {
    const float* const from = sums.read(x + offset, length);
    float* __restrict const sum = sums.sum.data();
    for (std::int64_t i = 0; i < length; ++i) sum[i] += from[i];
  });
  rows.fold(sums.sum, sums.mean);
  for (double& value : sums.mean) value /= static_cast<double>(count);
}

/// The moments of one chunk, which are kept in `sums`, from sums over x - sums.shift. With a shift not far from the
/// mean, nothing large cancels.
template <typename T>
Moments chunk_moments(const ChannelRows& rows, const T* x, std::int64_t first, std::int64_t count, ChunkSums<T>& sums) {
  std::fill(sums.sum.begin(), sums.sum.end(), 0.0f);
  std::fill(sums.squares.begin(), sums.squares.end(), 0.0f);
  rows.for_each_wide(first, count, [&](std::int64_t offset, std::int64_t length) {
    const float* const from = sums.read(x + offset, length);
    const float* const center = sums.shift.data();
    float* __restrict const sum = sums.sum.data();
    float* __restrict const squares = sums.squares.data();
    for (std::int64_t i = 0; i < length; ++i) {
      const float deviation = from[i] - center[i];
      sum[i] += deviation;
      squares[i] += deviation * deviation;
    }
  });
  const Moments moments = sums.moments(count);
  rows.fold(sums.sum, moments.mean);
  rows.fold(sums.squares, moments.squared_deviations);
  for (std::size_t c = 0; c < moments.mean.size(); ++c) {
    const double sum = moments.mean[c], mean_deviation = sum / static_cast<double>(count);
    moments.mean[c] = static_cast<double>(sums.shift[c]) + mean_deviation;
    moments.squared_deviations[c] = std::max(0.0, moments.squared_deviations[c] - sum * mean_deviation);
  }
  return moments;
}

/// Fills `moments`, all 0 before, with those of a block. The shift of a chunk is the mean of those before it in the
/// block: where that is far off, the variance of the block is as large as the squares that cancel.
template <typename T>
void block_moments(const ChannelRows& rows, const T* x, std::int64_t block, ChunkSums<T>& sums, Moments moments) {
  rows.for_each_chunk(block, [&](std::int64_t first, std::int64_t count) {
    if (moments.count == 0) chunk_mean(rows, x, first, count, sums);
    rows.widen(moments.count == 0 ? sums.mean : moments.mean, sums.shift);
    join(moments, chunk_moments(rows, x, first, count, sums));
  });
}

template <typename T>
ChannelMoments moments_of(const ChannelRows& rows, const T* x) {
  BlockValues blocks(rows);
  parallel_for(rows.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    ChunkSums<T> sums(rows);
    for (std::int64_t block = begin; block < end; ++block) {
      block_moments(rows, x, block, sums, {0, blocks.first(block), blocks.second(block)});
    }
  });
  const auto channels = static_cast<std::size_t>(rows.channels());
  ChannelMoments result{rows.rows(), ChannelValues(channels), ChannelValues(channels)};
  Moments all{0, result.mean, result.squared_deviations};
  for (std::int64_t block = 0; block < rows.blocks(); ++block) {
    join(all, {rows.rows_in(block), blocks.first(block), blocks.second(block)});
  }
  return result;
}

template <typename Function, typename T>
void normalise(const ChannelRows& rows, const WideTransform& transform, const T* x, T* y) {
  parallel_for(rows.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    const float* const mean = transform.mean.data();
    const float* const scale = transform.scale.data();
    const float* const bias = transform.bias.data();
    RunReader<T> read(rows.width());
    RunWriter<T> write(rows.width());
    const auto row = [&](std::int64_t offset, std::int64_t length) {
      const float* const from = read(x + offset, length);
      write(y + offset, length, [&](float* __restrict to) {
        for (std::int64_t i = 0; i < length; ++i) {
          to[i] = Function::value(WideTransform::apply(from[i], mean[i], scale[i], bias[i]));
        }
      });
    };
    for (std::int64_t block = begin; block < end; ++block) {
      rows.for_each_chunk(block,
                          [&](std::int64_t first, std::int64_t count) { rows.for_each_wide(first, count, row); });
    }
  });
}

void normalise(const Tensor& x, const WideTransform& transform, Activation activation, const Out& y) {
  dispatch_float(x.dtype(), "batch_norm", [&]<typename T>(TypeTag<T>) {
    visit_activation(activation, [&](auto kind) {
      normalise<activations::Of<kind>, T>(ChannelRows(x), transform, x.data<T>(), y.data<T>());
    });
  });
}

}  // namespace

bool supports_batch_norm(const Tensor& x, const Tensor& y) {
  return computes_in_float(x.dtype()) && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std) {
  const ChannelRows rows(x);
  const ChannelMoments moments =
      dispatch_float(x.dtype(), "batch_norm", [&]<typename T>(TypeTag<T>) { return moments_of(rows, x.data<T>()); });
  kernels::detail::finish_batch_statistics(moments, options, running_mean, running_var, saved_mean, saved_inverse_std);
  const WideTransform transform(rows, saved_mean.tensor().to_vector<double>(),
                                saved_inverse_std.tensor().to_vector<double>(), weight, bias);
  normalise(x, transform, options.activation, y);
}

void batch_norm_forward_eval(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, const BatchNormOptions& options, const Out& y,
                             const Out& saved_mean, const Out& saved_inverse_std) {
  kernels::detail::store_channels(running_mean.to_vector<double>(), saved_mean);
  kernels::detail::store_channels(kernels::detail::inverse_std_of(running_var.to_vector<double>(), options.eps),
                                  saved_inverse_std);
  const WideTransform transform(ChannelRows(x), saved_mean.tensor().to_vector<double>(),
                                saved_inverse_std.tensor().to_vector<double>(), weight, bias);
  normalise(x, transform, options.activation, y);
}

}  // namespace tandem::kernels::cpu
