// Batch normalisation on a GPU, forward: moments of each chunk of rows, their joint (which also moves the running
// statistics), then y.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/activation/device_activations.cuh"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_totals.cuh"
#include "tandem/kernels/norm/channel_transform.cuh"

namespace tandem::kernels::cuda {

namespace {

using device::AnyFloats;
using device::AnyFloatsOut;

constexpr std::int64_t kReducingBlocks = 528, kNormalisingBlocks = 2112;

/// Count, mean, and sum of squared deviations from the mean.
using Moments = Totals<3>;

/// Joins the moments of two sets (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979). The share is rounded to f32: it scales the small difference of two means.
__device__ void join_moments(Moments& all, const Moments& more) {
  if (more.fields[0] == 0.0) return;
  const double count = all.fields[0] + more.fields[0];
  const double share = static_cast<float>(more.fields[0]) / static_cast<float>(count);
  const double delta = more.fields[1] - all.fields[1];
  all.fields[1] += delta * share;
  all.fields[2] += more.fields[2] + delta * delta * all.fields[0] * share;
  all.fields[0] = count;
}

/// The moments of one channel in one thread, in f32, of x - shift. The shift is the thread's first value: what remains
/// is of the size of the deviations, however far from zero x is.
struct RunningMoments {
  float shift = 0.0f, mean = 0.0f, squares = 0.0f;

  /// Takes in `count` values; `share` of all values so far, these included.
  template <int kWidth>
  __device__ void add(const Rows<kWidth>& values, int v, int count, float before, float share) {
    float sum = 0.0f, deviations = 0.0f;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) sum += k < count ? values[k][v] - shift : 0.0f;
    const float own_mean = sum / static_cast<float>(count);
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      const float deviation = k < count ? values[k][v] - shift - own_mean : 0.0f;
      deviations += deviation * deviation;
    }
    const float delta = own_mean - mean;
    mean += delta * share;
    squares += deviations + delta * delta * before * share;
  }
};

template <typename T, int kWidth>
__global__ void chunk_moments(const T* x, ChannelGrid grid, double* partials) {
  const ChannelPlace place(grid, kWidth);
  RunningMoments own[kWidth];
  float taken = 0.0f;
  for_each_rows(grid, place, [&](std::int64_t row, int count) {
    Rows<kWidth> values;
    load_rows<kWidth>(x, grid, place.channel, row, count, values);
    const float total = taken + static_cast<float>(count), share = static_cast<float>(count) / total;
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      if (taken == 0.0f) own[v].shift = values[0][v];
      own[v].template add<kWidth>(values, v, count, taken, share);
    }
    taken = total;
  });
  Moments moments[kWidth];
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    moments[v] = {{taken, static_cast<double>(own[v].shift) + static_cast<double>(own[v].mean), own[v].squares}};
  }
  store_block_totals<kWidth>(grid, place, moments, join_moments, partials);
}

/// Joins neighbouring chunks, as many to a group, so that few are left for the last step: blockIdx.y's group.
__global__ void join_groups(const double* partials, ChannelGrid grid, int group_chunks, ChannelGrid groups,
                            double* joined) {
  const int group = static_cast<int>(blockIdx.y), first = group * group_chunks;
  const int end = min(first + group_chunks, grid.chunks);
  join_chunks<3>(grid, first, end, partials, join_moments, [&](int c, const Moments& moments) {
#pragma unroll
    for (int f = 0; f < 3; ++f)
      joined[(std::int64_t{f} * groups.chunks + group) * groups.channels + c] = moments.fields[f];
  });
}

/// Where the statistics of the batch go.
struct Statistics {
  AnyFloatsOut running_mean, running_var, saved_mean, saved_inverse_std;
};

__global__ void finish_moments(const double* partials, ChannelGrid grid, double momentum, double eps,
                               Statistics statistics) {
  join_chunks<3>(grid, partials, join_moments, [&](int c, const Moments& moments) {
    const double count = moments.fields[0], mean = moments.fields[1], variance = moments.fields[2] / count;
    statistics.saved_mean.store(c, mean);
    statistics.saved_inverse_std.store(c, 1.0 / sqrt(variance + eps));
    const auto move = [&](const AnyFloatsOut& running, double batch) {
      running.store(c, (1.0 - momentum) * running.load(c) + momentum * batch);
    };
    move(statistics.running_mean, mean);
    move(statistics.running_var, variance * (count / (count - 1.0)));
  });
}

__global__ void load_running_statistics(AnyFloats running_mean, AnyFloats running_var, int channels, double eps,
                                        AnyFloatsOut saved_mean, AnyFloatsOut saved_inverse_std) {
  for (std::int64_t c = device::thread_in_grid(); c < channels; c += device::threads_in_grid()) {
    saved_mean.store(c, running_mean.load(c));
    saved_inverse_std.store(c, 1.0 / sqrt(running_var.load(c) + eps));
  }
}

template <typename Function, typename T, int kWidth>
__global__ void normalise_rows(const T* x, ChannelGrid grid, ChannelParameters parameters, T* y) {
  const ChannelPlace place(grid, kWidth);
  const auto transform = load_transform<kWidth>(grid, place, parameters);
  for_each_rows(grid, place, [&](std::int64_t row, int count) {
    Rows<kWidth> values;
    load_rows<kWidth>(x, grid, place.channel, row, count, values);
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        if (k >= count) continue;
        values[k][v] = Function::value(transform(values[k][v], v));
      }
    }
    store_rows<kWidth>(y, grid, place.channel, row, count, values);
  });
}

void normalise(const Tensor& x, const ChannelParameters& parameters, Activation activation, const Out& y) {
  device::dispatch(x.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    const auto run = [&](auto width) {
      const ChannelGrid grid(x.numel() / x.size(1), x.size(1), width, kNormalisingBlocks);
      visit_activation(activation, [&](auto kind) {
        launch(normalise_rows<activations::Of<kind>, T, width>, {grid.grid(), kThreads},
               tandem::cuda::current_stream(x), from, grid, parameters, to);
      });
    };
    dispatch_channel_width(x.size(1), run, from, to);
  });
}

/// Moments of parts that somebody else left, `grid.chunks` of them: joined to so few that one block per four
/// channels is quick about them.
Tensor join_many(const Tensor& moments, ChannelGrid& grid) {
  constexpr int kFew = 256, kGroups = 64;
  grid.chunks = static_cast<int>(moments.size(1));
  if (grid.chunks <= kFew) return moments;
  ChannelGrid groups = grid;
  const int group_chunks = (grid.chunks + kGroups - 1) / kGroups;
  groups.chunks = (grid.chunks + group_chunks - 1) / group_chunks;
  const Out joined(make_partial_totals(3, groups, moments.device()));
  launch(join_groups, {dim3(join_blocks(grid), static_cast<unsigned>(groups.chunks)), kThreads},
         tandem::cuda::current_stream(moments), moments.data<double>(), grid, group_chunks, groups,
         joined.data<double>());
  grid = groups;
  return joined;
}

}  // namespace

void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std, const Tensor& moments) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y);
  const cudaStream_t stream = tandem::cuda::current_stream(x);
  const Statistics statistics{AnyFloatsOut(running_mean), AnyFloatsOut(running_var), AnyFloatsOut(saved_mean),
                              AnyFloatsOut(saved_inverse_std)};
  device::dispatch(x.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = in.data<T>();
    const auto run = [&](auto width) {
      ChannelGrid grid(x.numel() / x.size(1), x.size(1), width, kReducingBlocks);
      Tensor partials;
      if (moments.defined()) {
        partials = join_many(moments, grid);
      } else {
        const Out own(make_partial_totals(3, grid, x.device()));
        launch(chunk_moments<T, width>, {grid.grid(), kThreads}, stream, from, grid, own.data<double>());
        partials = own;
      }
      launch(finish_moments, {join_blocks(grid), kThreads}, stream, partials.data<double>(), grid, options.momentum,
             options.eps, statistics);
    };
    dispatch_channel_width(x.size(1), run, from);
  });
  normalise(in, {statistics.saved_mean, statistics.saved_inverse_std, AnyFloats(weight), AnyFloats(bias)},
            options.activation, out.dense());
  out.finish();
}

void batch_norm_forward_eval(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, const BatchNormOptions& options, const Out& y,
                             const Out& saved_mean, const Out& saved_inverse_std) {
  device::dispatch(x.dtype(), "batch_norm", [](auto) {});  // refuses f64 before anything is written
  const Tensor in = dense_input(x);
  const DenseOutput out(y);
  const AnyFloatsOut mean(saved_mean), inverse_std(saved_inverse_std);
  launch(load_running_statistics, {device::blocks_for(x.size(1), kThreads), kThreads}, tandem::cuda::current_stream(x),
         AnyFloats(running_mean), AnyFloats(running_var), static_cast<int>(x.size(1)), options.eps, mean, inverse_std);
  normalise(in, {mean, inverse_std, AnyFloats(weight), AnyFloats(bias)}, options.activation, out.dense());
  out.finish();
}

}  // namespace tandem::kernels::cuda
