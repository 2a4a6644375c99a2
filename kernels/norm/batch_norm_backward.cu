// Batch normalisation on a GPU, backward: sums over chunks of the batch, then in one launch their joint and, behind it,
// grad_x. With GELU or SiLU the first pass leaves the gradient behind these in grad_x.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/activation/device_activations.cuh"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_totals.cuh"
#include "tandem/kernels/norm/channel_transform.cuh"

namespace tandem::kernels::cuda {

namespace {

using device::AnyFloats;
using device::AnyFloatsOut;

/// Whether the slope of an activation takes so long that the gradient behind it is kept, in grad_x, rather than
/// computed for the sums and once more for grad_x.
template <typename Function>
constexpr bool kKeepsGradient =
    !std::is_same_v<Function, activations::None> && !std::is_same_v<Function, activations::Relu>;

/// Blocks that are at work at once on each multiprocessor, which registers must allow: f32 has more to hold, and so
/// have the slopes of some activations.
template <typename Function, typename T>
constexpr int kBlocksAtOnce = std::is_same_v<T, float> || kKeepsGradient<Function> ? 2 : 3;

// As many as are at work at once on an H100's 132 multiprocessors: more would wait for these, as a third does in f32.
template <typename Function>
constexpr std::int64_t kReducingBlocks = (kKeepsGradient<Function> ? 2 : 3) * 132;
constexpr std::int64_t kPropagatingBlocks = 2112;

/// Sums of the gradient, and of the gradient times x - mean.
using GradientSums = Totals<2>;

__device__ void add_sums(GradientSums& all, const GradientSums& more) {
  all.fields[0] += more.fields[0];
  all.fields[1] += more.fields[1];
}

/// Sums up; `kept` gets the gradient behind the activation, rounded as the sums then take it; null: it is not kept.
template <typename Function, typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce<Function, T>)
    chunk_gradients(const T* x, const T* grad_y, ChannelGrid grid, ChannelParameters parameters, double* partials,
                    T* kept) {
  const ChannelPlace place(grid, kWidth);
  const auto transform = load_transform<kWidth>(grid, place, parameters);
  GradientSums sums[kWidth];
  for_each_rows(grid, place, [&](std::int64_t row, int count) {
    Rows<kWidth> values, gradients;
    load_rows<kWidth>(x, grid, place.channel, row, count, values);
    load_rows<kWidth>(grad_y, grid, place.channel, row, count, gradients);
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        if (k >= count) continue;
        gradients[k][v] = Function::gradient(transform(values[k][v], v), gradients[k][v]);
        if (kKeepsGradient<Function> && kept != nullptr)
          gradients[k][v] = device::to_float(device::from_float<T>(gradients[k][v]));
      }
    }
    if (kKeepsGradient<Function> && kept != nullptr)
      store_rows<kWidth>(kept, grid, place.channel, row, count, gradients);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      // A few terms in f32, many of those in f64: no error grows with the number of rows.
      float sum = 0.0f, product = 0.0f;
#pragma unroll
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (k >= count) continue;
        sum += gradients[k][v];
        product += gradients[k][v] * (values[k][v] - transform.mean[v]);
      }
      sums[v].fields[0] += static_cast<double>(sum);
      sums[v].fields[1] += static_cast<double>(product);
    }
  });
  store_block_totals<kWidth>(grid, place, sums, add_sums, partials);
}

/// What training takes off the gradient: center + (x - mean) * slope. [C] each, absent in evaluation.
struct Correction {
  float *center, *slope;
};

/// What becomes of the sums of all chunks, in blocks of kJoinLanes channels.
struct Finishing {
  const double* partials;
  ChannelGrid chunks;
  AnyFloats inverse_std;
  AnyFloatsOut grad_weight, grad_bias;
  Correction correction;

  /// The work of the block of that number.
  __device__ void run(unsigned block) const {
    join_chunks<2>(chunks, block, partials, add_sums, [&](int c, const GradientSums& sums) {
      const double inverse = inverse_std.load(c), product = sums.fields[1] * inverse;
      grad_bias.store(c, sums.fields[0]);
      grad_weight.store(c, product);
      if (correction.center == nullptr) return;
      const double count = static_cast<double>(chunks.rows);
      correction.center[c] = static_cast<float>(sums.fields[0] / count);
      correction.slope[c] = static_cast<float>(product * inverse / count);
    });
  }
};

/// Where nobody wants grad_x.
__global__ void finish_gradients(Finishing finishing) { finishing.run(blockIdx.x); }

/// grad_x = (gradient - center - (x - mean) * slope) * scale; grad_y may be grad_x.
template <typename Function, typename T, int kWidth>
__device__ void propagate(const T* x, const T* grad_y, const ChannelGrid& grid, const ChannelPlace& place,
                          const ChannelParameters& parameters, const Correction& correction, T* grad_x) {
  using Values = device::Vector<float, kWidth>;
  TANDEM_SHARED(Values, centers, [kMostLanes]);
  TANDEM_SHARED(Values, slopes, [kMostLanes]);
  const bool corrected = correction.center != nullptr;
  stage_channels<kWidth>(grid, place, centers, [&](int c) { return corrected ? correction.center[c] : 0.0f; });
  stage_channels<kWidth>(grid, place, slopes, [&](int c) { return corrected ? correction.slope[c] : 0.0f; });
  const auto transform = load_transform<kWidth>(grid, place, parameters);
  if (place.row >= place.end) return;
  const Values center = device::load_vector<kWidth>(centers[place.lane].values),
               slope = device::load_vector<kWidth>(slopes[place.lane].values);
  for_each_rows(grid, place, [&](std::int64_t row, int count) {
    Rows<kWidth> values, gradients;
    load_rows<kWidth>(x, grid, place.channel, row, count, values);
    load_rows<kWidth>(grad_y, grid, place.channel, row, count, gradients);
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        if (k >= count) continue;
        const float gradient = Function::gradient(transform(values[k][v], v), gradients[k][v]);
        gradients[k][v] = (gradient - center[v] - (values[k][v] - transform.mean[v]) * slope[v]) * transform.scale[v];
      }
    }
    store_rows<kWidth>(grad_x, grid, place.channel, row, count, gradients);
  });
}

/// By running statistics, where nobody wants the gradients of weight and bias.
template <typename Function, typename T, int kWidth>
__global__ void propagate_rows(const T* x, const T* grad_y, ChannelGrid grid, ChannelParameters parameters, T* grad_x) {
  propagate<Function, T, kWidth>(x, grad_y, grid, ChannelPlace(grid, kWidth), parameters, {}, grad_x);
}

/// Behind the first blocks, which finish the sums.
template <typename Function, typename T, int kWidth>
__global__ void finish_and_propagate(Finishing finishing, unsigned finishing_blocks, device::Phases phases, const T* x,
                                     const T* grad_y, ChannelGrid grid, ChannelParameters parameters, T* grad_x) {
  const unsigned turn = phases.begin();
  if (turn < finishing_blocks) {
    finishing.run(turn);
    return phases.finish();
  }
  const unsigned number = turn - finishing_blocks, tiles = static_cast<unsigned>(grid.tiles);
  phases.await_last(finishing_blocks, gridDim.x - finishing_blocks);
  propagate<Function, T, kWidth>(x, grad_y, grid, ChannelPlace(grid, kWidth, number % tiles, number / tiles),
                                 parameters, finishing.correction, grad_x);
}

/// Calls visit with the type of an element and an activation as constants.
template <typename Visit>
void visit_types(DType dtype, Activation activation, Visit&& visit) {
  device::dispatch(dtype, "batch_norm_backward",
                   [&](auto tag) { visit_activation(activation, [&](auto kind) { visit(tag, kind); }); });
}

}  // namespace

void batch_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& inverse_std, const BatchNormOptions& options, const Tensor& grad_y,
                         const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  const Tensor in = dense_input(x), gradient = dense_input(grad_y);
  const DenseOutput out(grad_x);
  const cudaStream_t stream = tandem::cuda::current_stream(x);
  const ChannelParameters parameters{AnyFloats(mean), AnyFloats(inverse_std), AnyFloats(weight), AnyFloats(bias)};
  const std::int64_t rows = x.numel() / x.size(1), channels = x.size(1);
  Out corrections;
  Correction correction{};
  if (options.training) {
    const MemoryTagScope scope(MemoryTag::workspace);
    corrections = Out(Tensor::empty({2, channels}, {.device = x.device()}));
    correction = {corrections.data<float>(), corrections.data<float>() + channels};
  }
  visit_types(x.dtype(), options.activation, [&](auto tag, auto kind) {
    using T = typename decltype(tag)::type;
    using Function = activations::Of<kind>;
    const T *const x_data = in.data<T>(), *const gradient_data = gradient.data<T>();
    T* const out_data = grad_x.defined() ? out.dense().data<T>() : nullptr;
    const auto run = [&](auto width) {
      const ChannelGrid grid(rows, channels, width, kPropagatingBlocks);
      if (!options.training && !grad_weight.defined() && !grad_bias.defined()) {
        if (out_data == nullptr) return;
        return launch(propagate_rows<Function, T, width>, {grid.grid(), kThreads}, stream, x_data, gradient_data, grid,
                      parameters, out_data);
      }
      const bool is_kept = kKeepsGradient<Function> && out_data != nullptr;
      const ChannelGrid chunks(rows, channels, width, kReducingBlocks<Function>);
      const Out partials(make_partial_totals(2, chunks, x.device()));
      launch(chunk_gradients<Function, T, width>, {chunks.grid(), kThreads}, stream, x_data, gradient_data, chunks,
             parameters, partials.data<double>(), is_kept ? out_data : nullptr);
      const Finishing finishing{partials.data<double>(), chunks,    parameters.inverse_std, AnyFloatsOut(grad_weight),
                                AnyFloatsOut(grad_bias), correction};
      if (out_data == nullptr) return launch(finish_gradients, {join_blocks(chunks), kThreads}, stream, finishing);
      launch(is_kept ? finish_and_propagate<activations::None, T, width> : finish_and_propagate<Function, T, width>,
             {join_blocks(chunks) + grid.blocks(), kThreads}, stream, finishing, join_blocks(chunks),
             device::Phases(stream), x_data, is_kept ? out_data : gradient_data, grid, parameters, out_data);
    };
    dispatch_channel_width(channels, run, x_data, gradient_data, out_data);
  });
  out.finish();
}

}  // namespace tandem::kernels::cuda
