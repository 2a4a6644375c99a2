// Batch normalisation on a GPU, forward: moments of each chunk of rows, then in one launch their joint (which also
// moves the running statistics) and, behind it, y.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/activation/device_activations.cuh"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_totals.cuh"
#include "tandem/kernels/norm/channel_transform.cuh"

#include <optional>

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

/// Where the statistics of the batch go.
struct Statistics {
  AnyFloatsOut running_mean, running_var, saved_mean, saved_inverse_std;
};

/// What joins the moments of the parts of the rows, in blocks of kJoinLanes channels: of all at once, or of groups of
/// neighbours first.
struct Joining {
  const double* partials;  // [3][parts.chunks][channels]
  ChannelGrid parts;
  double* joined = nullptr;  // of the groups; null where there are none
  int group_chunks = 0;
  ChannelGrid groups = parts;
  double momentum = 0.0, eps = 0.0;
  Statistics statistics = {};

  /// Blocks that join groups, and blocks that end it.
  unsigned group_blocks() const {
    return group_chunks == 0 ? 0 : join_blocks(parts) * static_cast<unsigned>(groups.chunks);
  }
  unsigned last_blocks() const { return join_blocks(parts); }

  /// What is to be done with the moments of a channel of the whole batch.
  __device__ void finish(int c, const Moments& moments) const {
    const double count = moments.fields[0], mean = moments.fields[1], variance = moments.fields[2] / count;
    statistics.saved_mean.store(c, mean);
    statistics.saved_inverse_std.store(c, 1.0 / sqrt(variance + eps));
    const auto move = [&](const AnyFloatsOut& running, double batch) {
      running.store(c, (1.0 - momentum) * running.load(c) + momentum * batch);
    };
    move(statistics.running_mean, mean);
    move(statistics.running_var, variance * (count / (count - 1.0)));
  }

  /// The work of a block: of a group where `is_of_group`, with numbers [0, group_blocks), or else of the last step.
  __device__ void run(bool is_of_group, unsigned number, unsigned across) const {
    const bool ends_groups = !is_of_group && joined != nullptr;
    const int group = static_cast<int>(number / across), first = is_of_group ? group * group_chunks : 0;
    const ChannelGrid& from = ends_groups ? groups : parts;
    const int end = is_of_group ? min(first + group_chunks, parts.chunks) : from.chunks;
    join_chunks<3>(from, number % across, first, end, ends_groups ? joined : partials, join_moments,
                   [&](int c, const Moments& moments) {
                     if (!is_of_group) return finish(c, moments);
#pragma unroll
                     for (int f = 0; f < 3; ++f)
                       joined[(std::int64_t{f} * groups.chunks + group) * groups.channels + c] = moments.fields[f];
                   });
  }
};

__global__ void load_running_statistics(AnyFloats running_mean, AnyFloats running_var, int channels, double eps,
                                        AnyFloatsOut saved_mean, AnyFloatsOut saved_inverse_std) {
  for (std::int64_t c = device::thread_in_grid(); c < channels; c += device::threads_in_grid()) {
    saved_mean.store(c, running_mean.load(c));
    saved_inverse_std.store(c, 1.0 / sqrt(running_var.load(c) + eps));
  }
}

template <typename Function, typename T, int kWidth>
__device__ void normalise(const T* x, const ChannelGrid& grid, const ChannelPlace& place,
                          const ChannelParameters& parameters, T* y) {
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

/// By statistics that are there.
template <typename Function, typename T, int kWidth>
__global__ void normalise_rows(const T* x, ChannelGrid grid, ChannelParameters parameters, T* y) {
  normalise<Function, T, kWidth>(x, grid, ChannelPlace(grid, kWidth), parameters, y);
}

/// By those that its first blocks join.
template <typename Function, typename T, int kWidth>
__global__ void join_and_normalise(Joining joining, unsigned group_blocks, unsigned last_blocks, device::Phases phases,
                                   const T* x, ChannelGrid grid, ChannelParameters parameters, T* y) {
  const unsigned turn = phases.begin(), joining_blocks = group_blocks + last_blocks;
  if (turn < joining_blocks) {
    const bool is_of_group = turn < group_blocks;
    if (!is_of_group && group_blocks > 0) phases.await(group_blocks);
    joining.run(is_of_group, is_of_group ? turn : turn - group_blocks, last_blocks);
    return phases.finish();
  }
  const unsigned number = turn - joining_blocks, tiles = static_cast<unsigned>(grid.tiles);
  phases.await_last(joining_blocks, gridDim.x - joining_blocks);
  normalise<Function, T, kWidth>(x, grid, ChannelPlace(grid, kWidth, number % tiles, number / tiles), parameters, y);
}

/// Calls launch_for(kind of the activation, element, channels per thread, grid, x's and y's elements).
template <typename LaunchFor>
void for_normalising(const Tensor& x, Activation activation, const Out& y, LaunchFor&& launch_for) {
  device::dispatch(x.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    const auto run = [&](auto width) {
      const ChannelGrid grid(x.numel() / x.size(1), x.size(1), width, kNormalisingBlocks);
      visit_activation(activation, [&](auto kind) { launch_for(kind, width, grid, from, to); });
    };
    dispatch_channel_width(x.size(1), run, from, to);
  });
}

/// The moments of chunks of x, and what joins them.
Joining chunk_by_chunk(const Tensor& x, Tensor& partials) {
  std::optional<Joining> joining;
  device::dispatch(x.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = x.data<T>();
    const auto run = [&](auto width) {
      const ChannelGrid grid(x.numel() / x.size(1), x.size(1), width, kReducingBlocks);
      const Out own(make_partial_totals(3, grid, x.device()));
      launch(chunk_moments<T, width>, {grid.grid(), kThreads}, tandem::cuda::current_stream(x), from, grid,
             own.data<double>());
      partials = own;
      joining = Joining{.partials = own.data<double>(), .parts = grid};
    };
    dispatch_channel_width(x.size(1), run, from);
  });
  return *joining;
}

/// What joins moments of parts that somebody else left. Of many parts it forms so few groups that one block per
/// kJoinLanes channels is quick about them.
Joining of_parts(const Tensor& x, const Tensor& moments) {
  constexpr int kFew = 256, kGroups = 64;
  ChannelGrid grid(x.numel() / x.size(1), x.size(1), 1, kReducingBlocks);
  grid.chunks = static_cast<int>(moments.size(1));
  Joining joining{.partials = moments.data<double>(), .parts = grid};
  if (grid.chunks <= kFew) return joining;
  joining.group_chunks = (grid.chunks + kGroups - 1) / kGroups;
  joining.groups.chunks = (grid.chunks + joining.group_chunks - 1) / joining.group_chunks;
  return joining;
}

}  // namespace

void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std, const Tensor& moments) {
  const Tensor in = dense_input(x);
  const DenseOutput out(y);
  const cudaStream_t stream = tandem::cuda::current_stream(x);
  Tensor partials = moments;
  Joining joining = moments.defined() ? of_parts(in, moments) : chunk_by_chunk(in, partials);
  joining.momentum = options.momentum;
  joining.eps = options.eps;
  joining.statistics = {AnyFloatsOut(running_mean), AnyFloatsOut(running_var), AnyFloatsOut(saved_mean),
                        AnyFloatsOut(saved_inverse_std)};
  Out joined;
  if (joining.group_chunks > 0) {
    joined = Out(make_partial_totals(3, joining.groups, x.device()));
    joining.joined = joined.data<double>();
  }
  const ChannelParameters parameters{joining.statistics.saved_mean, joining.statistics.saved_inverse_std,
                                     AnyFloats(weight), AnyFloats(bias)};
  const unsigned group_blocks = joining.group_blocks(), last_blocks = joining.last_blocks();
  for_normalising(in, options.activation, out.dense(),
                  [&]<typename T>(auto kind, auto width, const ChannelGrid& grid, const T* from, T* to) {
                    launch(join_and_normalise<activations::Of<kind>, T, width>,
                           {group_blocks + last_blocks + grid.blocks(), kThreads}, stream, joining, group_blocks,
                           last_blocks, device::Phases(stream), from, grid, parameters, to);
                  });
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
  const ChannelParameters parameters{mean, inverse_std, AnyFloats(weight), AnyFloats(bias)};
  for_normalising(in, options.activation, out.dense(),
                  [&]<typename T>(auto kind, auto width, const ChannelGrid& grid, const T* from, T* to) {
                    launch(normalise_rows<activations::Of<kind>, T, width>, {grid.grid(), kThreads},
                           tandem::cuda::current_stream(x), from, grid, parameters, to);
                  });
  out.finish();
}

}  // namespace tandem::kernels::cuda
