// Softmax cross-entropy on a GPU. Rows of up to 1024 classes stay in the registers of a warp or a block: the logits are
// read once. Longer rows are read once for the sum (Milakov, Gimelshein: "Online normalizer calculation for softmax",
// 2018) and once more for the probabilities. A last block of the launch adds the rows' losses up in a fixed order.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/any_floats.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;

constexpr int kPerThread = 4;                  // classes of a thread, where rows stay in registers
constexpr std::int64_t kMostBlocks = 132 * 8;  // as many as a large GPU runs at once

/// Logits, labels and results of all rows; probabilities may be null.
template <typename T>
struct Rows {
  const T* logits;
  std::int64_t row_stride, class_stride;
  const std::int64_t* labels;
  std::int64_t label_stride;
  std::int64_t rows, classes;
  double label_smoothing;
  double* losses;
  float* probabilities;

  __device__ float logit(std::int64_t row, std::int64_t c) const {
    return device::to_float(logits[row * row_stride + c * class_stride]);
  }

  /// From the largest logit, the sum of exp(logit - largest) and the sum of logit - largest. A label outside of the
  /// classes makes it NaN.
  __device__ void store_loss(std::int64_t row, float largest, double sum, double sum_of_differences) const {
    const std::int64_t label = labels[row * label_stride];
    if (label < 0 || label >= classes) {
      losses[row] = NAN;
      return;
    }
    const double on_label = logit(row, label) - largest;
    // Without smoothing, a logit of minus infinity (a masked class) must not count.
    const double spread =
        label_smoothing > 0.0 ? label_smoothing * sum_of_differences / static_cast<double>(classes) : 0.0;
    losses[row] = log(sum) - (1.0 - label_smoothing) * on_label - spread;
  }
};

__device__ float larger(float a, float b) { return a < b ? b : a; }

/// The mean of all rows' losses, by one block: as 1024 threads would add them up, each of these takes four turns.
__device__ void store_mean(const double* losses, std::int64_t rows, float* loss) {
  constexpr int kSlices = 1024, kTurns = kSlices / kThreadsPerBlock, kWarps = kSlices / device::kWarpThreads;
  TANDEM_SHARED(double, of_warps, [kWarps]);
  const int thread = static_cast<int>(threadIdx.x);
  for (int turn = 0; turn < kTurns; ++turn) {
    const int slice = thread + turn * kThreadsPerBlock;
    double sum = 0.0;
    for (std::int64_t row = slice; row < rows; row += kSlices) sum += losses[row];
    sum = device::warp_sum(sum);
    if (thread % device::kWarpThreads == 0) of_warps[slice / device::kWarpThreads] = sum;
  }
  __syncthreads();
  if (thread != 0) return;
  double sum = 0.0;
  for (int warp = 0; warp < kWarps; ++warp) sum += of_warps[warp];
  *loss = static_cast<float>(sum / static_cast<double>(rows));
}

/// The blocks of the rows, and behind them one for the mean: calls of_rows(number, blocks) in the former.
template <typename OfRows>
__device__ void rows_then_mean(const device::Phases& phases, const double* losses, std::int64_t rows, float* loss,
                               OfRows&& of_rows) {
  const unsigned turn = phases.begin(), row_blocks = gridDim.x - 1;
  if (turn < row_blocks) {
    of_rows(turn, row_blocks);
    return phases.finish();
  }
  phases.await_last(row_blocks, 1);
  store_mean(losses, rows, loss);
}

template <typename T, int kRowThreads>
__device__ void take_short_rows(const Rows<T>& r, unsigned block, unsigned blocks) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  for (std::int64_t row = static_cast<std::int64_t>(block) * kRowsOfBlock + threadIdx.x / kRowThreads; row < r.rows;
       row += static_cast<std::int64_t>(blocks) * kRowsOfBlock) {
    float values[kPerThread];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int c = lane + k * kRowThreads;
      values[k] = c < r.classes ? r.logit(row, c) : -INFINITY;
      largest = larger(largest, values[k]);
    }
    largest = device::row_reduce<kRowThreads>(largest, -INFINITY, larger);
    float sum = 0.0f, differences = 0.0f;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      if (lane + k * kRowThreads >= r.classes) continue;
      differences += values[k] - largest;
      values[k] = expf(values[k] - largest);
      sum += values[k];
    }
    sum = device::row_sum<kRowThreads>(sum);
    differences = device::row_sum<kRowThreads>(differences);
    if (lane == 0) r.store_loss(row, largest, sum, differences);
    if (r.probabilities == nullptr) continue;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int c = lane + k * kRowThreads;
      if (c < r.classes) r.probabilities[row * r.classes + c] = values[k] / sum;
    }
  }
}

template <typename T, int kRowThreads>
__global__ void short_rows(Rows<T> r, device::Phases phases, float* loss) {
  rows_then_mean(phases, r.losses, r.rows, loss,
                 [&](unsigned block, unsigned blocks) { take_short_rows<T, kRowThreads>(r, block, blocks); });
}

/// exp(value - largest), where neither need be finite: minus infinity minus itself is no number, but no term either.
__device__ float term(float value, float largest) { return value == -INFINITY ? 0.0f : expf(value - largest); }

template <typename T>
__device__ void take_long_rows(const Rows<T>& r, unsigned block, unsigned blocks) {
  for (std::int64_t row = block; row < r.rows; row += blocks) {
    float largest = -INFINITY, sum = 0.0f;  // of what this thread has read: sum of exp(logit - largest)
    double logits = 0.0;
    for (std::int64_t c = threadIdx.x; c < r.classes; c += kThreadsPerBlock) {
      const float value = r.logit(row, c);
      if (value > largest) {
        sum *= term(largest, value);
        largest = value;
      }
      sum += term(value, largest);
      logits += value;
    }
    const float own_largest = largest;
    largest = device::block_reduce<kThreadsPerBlock>(largest, -INFINITY, larger);
    sum = device::block_sum<kThreadsPerBlock>(sum * term(own_largest, largest));
    logits = device::block_sum<kThreadsPerBlock>(logits);
    const double differences = logits - static_cast<double>(r.classes) * largest;
    if (threadIdx.x == 0) r.store_loss(row, largest, sum, differences);
    if (r.probabilities == nullptr) continue;
    for (std::int64_t c = threadIdx.x; c < r.classes; c += kThreadsPerBlock) {
      r.probabilities[row * r.classes + c] = expf(r.logit(row, c) - largest) / sum;
    }
  }
}

template <typename T>
__global__ void long_rows(Rows<T> r, device::Phases phases, float* loss) {
  rows_then_mean(phases, r.losses, r.rows, loss,
                 [&](unsigned block, unsigned blocks) { take_long_rows(r, block, blocks); });
}

/// Where the gradient of each row goes, and what it is made of.
template <typename T>
struct GradientRows {
  const float* probabilities;
  const std::int64_t* labels;
  std::int64_t label_stride, rows, classes;
  double label_smoothing;
  device::AnyFloats grad_loss;
  T* grad_logits;
  std::int64_t row_stride, class_stride;
};

/// A block takes `rows_at_once` rows, so that short rows fill it, too.
template <typename T>
__global__ void row_gradients(GradientRows<T> r, int rows_at_once) {
  const auto factor = static_cast<float>(r.grad_loss.load(0) / static_cast<double>(r.rows));
  const auto everywhere = static_cast<float>(r.label_smoothing / static_cast<double>(r.classes));
  const auto on_label = static_cast<float>(1.0 - r.label_smoothing);
  const auto step = static_cast<std::int64_t>(gridDim.x) * rows_at_once;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * rows_at_once; first < r.rows; first += step) {
    const auto classes = static_cast<unsigned>(r.classes);
    const auto here = static_cast<unsigned>(min(static_cast<std::int64_t>(rows_at_once), r.rows - first));
    for (unsigned i = threadIdx.x; i < here * classes; i += kThreadsPerBlock) {
      const std::int64_t row = first + i / classes, c = i % classes, label = r.labels[row * r.label_stride];
      float gradient = factor * (r.probabilities[row * r.classes + c] - everywhere - (c == label ? on_label : 0.0f));
      if (label < 0 || label >= r.classes) gradient = NAN;
      r.grad_logits[row * r.row_stride + c * r.class_stride] = device::from_float<T>(gradient);
    }
  }
}

}  // namespace

void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
                                   const Out& probabilities) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  require(classes < (1 << 30), "softmax_cross_entropy: {} classes are too many for a GPU", classes);
  const cudaStream_t stream = tandem::cuda::current_stream(logits);
  if (rows == 0) return loss.fill(NAN);
  const MemoryTagScope scope(MemoryTag::workspace);
  const Out losses(Tensor::empty({rows}, {.dtype = DType::f64, .device = logits.device()}));
  device::dispatch(logits.dtype(), "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Rows<T> r{logits.data<T>(),
                    logits.stride(0),
                    logits.stride(1),
                    labels.data<std::int64_t>(),
                    labels.stride(0),
                    rows,
                    classes,
                    label_smoothing,
                    losses.data<double>(),
                    probabilities.defined() ? probabilities.data<float>() : nullptr};
    constexpr int kWarp = device::kWarpThreads;
    const auto start = [&](auto kernel, std::int64_t rows_of_block) {
      launch(kernel, {device::blocks_for(rows, rows_of_block, kMostBlocks) + 1, kThreadsPerBlock}, stream, r,
             device::Phases(stream), loss.data<float>());
    };
    if (classes <= kWarp * kPerThread) {
      start(short_rows<T, kWarp>, kThreadsPerBlock / kWarp);
    } else if (classes <= kThreadsPerBlock * kPerThread) {
      start(short_rows<T, kThreadsPerBlock>, 1);
    } else {
      start(long_rows<T>, 1);
    }
  });
}

void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Out& grad_logits) {
  const std::int64_t rows = probabilities.size(0), classes = probabilities.size(1);
  require(classes < (1 << 30), "softmax_cross_entropy: {} classes are too many for a GPU", classes);
  device::dispatch(grad_logits.dtype(), "softmax_cross_entropy_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (rows == 0) return;
    const Tensor p = probabilities.contiguous();
    const GradientRows<T> r{p.data<float>(),
                            labels.data<std::int64_t>(),
                            labels.stride(0),
                            rows,
                            classes,
                            label_smoothing,
                            device::AnyFloats(grad_loss),
                            grad_logits.data<T>(),
                            grad_logits.stride(0),
                            grad_logits.stride(1)};
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, 4 * kThreadsPerBlock / classes);
    launch(row_gradients<T>, {device::blocks_for(rows, rows_at_once, kMostBlocks), kThreadsPerBlock},
           tandem::cuda::current_stream(grad_logits), r, static_cast<int>(rows_at_once));
  });
}

}  // namespace tandem::kernels::cuda
