// Softmax of rows on a GPU: a warp or a block takes a row, and reads it from memory once and then from the cache.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/activation/softmax_implementations.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;

constexpr std::int64_t kLongestOfWarp = 128;
constexpr std::int64_t kMostBlocks = 132 * 8;  // as many as a large GPU runs at once

template <typename T, int kRowThreads>
__global__ void softmax_rows(SoftmaxResult result, const T* x, std::int64_t rows, std::int64_t columns, float* y) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kRowThreads;
  const int first = static_cast<int>(threadIdx.x) % kRowThreads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowThreads; row < rows;
       row += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    const T* const from = x + row * columns;
    float* const to = y + row * columns;
    float largest = -INFINITY;
    for (std::int64_t c = first; c < columns; c += kRowThreads) {
      const float value = device::to_float(from[c]);
      largest = largest < value ? value : largest;
    }
    largest = device::row_reduce<kRowThreads>(largest, -INFINITY, [](float a, float b) { return a < b ? b : a; });
    float sum = 0.0f;
    for (std::int64_t c = first; c < columns; c += kRowThreads) sum += expf(device::to_float(from[c]) - largest);
    sum = device::row_sum<kRowThreads>(sum);
    const float log_sum = logf(sum);
    for (std::int64_t c = first; c < columns; c += kRowThreads) {
      const float difference = device::to_float(from[c]) - largest;
      to[c] = result == SoftmaxResult::probabilities ? expf(difference) / sum : difference - log_sum;
    }
  }
}

template <typename T, int kRowThreads>
__global__ void softmax_gradient_rows(SoftmaxResult result, const float* y, const float* grad_y, std::int64_t rows,
                                      std::int64_t columns, T* grad_x) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kRowThreads;
  const bool probabilities = result == SoftmaxResult::probabilities;
  const int first = static_cast<int>(threadIdx.x) % kRowThreads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kRowThreads; row < rows;
       row += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    const float *const output = y + row * columns, *const gradient = grad_y + row * columns;
    T* const to = grad_x + row * columns;
    float sum = 0.0f;
    for (std::int64_t c = first; c < columns; c += kRowThreads)
      sum += probabilities ? output[c] * gradient[c] : gradient[c];
    sum = device::row_sum<kRowThreads>(sum);
    for (std::int64_t c = first; c < columns; c += kRowThreads) {
      const float value = probabilities ? output[c] * (gradient[c] - sum) : gradient[c] - expf(output[c]) * sum;
      to[c] = device::from_float<T>(value);
    }
  }
}

/// Blocks for rows of that many threads.
unsigned blocks_of(std::int64_t rows, int row_threads) {
  return device::blocks_for(rows, kThreadsPerBlock / row_threads, kMostBlocks);
}

}  // namespace

void softmax_forward(SoftmaxResult result, const Tensor& x, const Out& y) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
  device::dispatch(x.dtype(), "softmax_forward", [&]<typename T>(TypeTag<T>) {
    const bool is_short = columns <= kLongestOfWarp;
    const auto kernel = is_short ? softmax_rows<T, device::kWarpThreads> : softmax_rows<T, kThreadsPerBlock>;
    const unsigned blocks = blocks_of(rows, is_short ? device::kWarpThreads : kThreadsPerBlock);
    launch(kernel, {blocks, kThreadsPerBlock}, tandem::cuda::current_stream(y), result, x.data<T>(), rows, columns,
           y.data<float>());
  });
}

void softmax_backward(SoftmaxResult result, const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  const std::int64_t rows = y.size(0), columns = y.size(1);
  device::dispatch(grad_x.dtype(), "softmax_backward", [&]<typename T>(TypeTag<T>) {
    const bool is_short = columns <= kLongestOfWarp;
    const auto kernel =
        is_short ? softmax_gradient_rows<T, device::kWarpThreads> : softmax_gradient_rows<T, kThreadsPerBlock>;
    const unsigned blocks = blocks_of(rows, is_short ? device::kWarpThreads : kThreadsPerBlock);
    launch(kernel, {blocks, kThreadsPerBlock}, tandem::cuda::current_stream(grad_x), result, y.data<float>(),
           grad_y.data<float>(), rows, columns, grad_x.data<T>());
  });
}

}  // namespace tandem::kernels::cuda
