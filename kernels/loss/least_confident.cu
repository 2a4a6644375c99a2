// The least confident rows on a GPU: a key for each row, and then the rank of each row, which is the number of rows
// that come before it. Rows are those of a batch, so that comparing each with each is little work, and nothing waits
// for anything else but the keys.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/cuda/shared.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/loss/confidence.h"
#include "tandem/kernels/loss/least_confident_implementations.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;

/// A warp takes a row.
template <typename T>
__global__ void key_rows(const T* logits, std::int64_t row_stride, std::int64_t class_stride, std::int64_t rows,
                         std::int64_t classes, std::uint64_t* keys) {
  static_assert(kConfidenceSums == device::kWarpThreads);
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  for (std::int64_t row = device::thread_in_grid() / device::kWarpThreads; row < rows;
       row += device::threads_in_grid() / device::kWarpThreads) {
    const T* const from = logits + row * row_stride;
    float largest = -INFINITY;
    bool has_nan = false;
    for (std::int64_t c = lane; c < classes; c += device::kWarpThreads) {
      const float value = device::to_float(from[c * class_stride]);
      has_nan = has_nan || !(fabsf(value) <= INFINITY);
      if (value > largest) largest = value;
    }
    largest = device::warp_max(largest);
    double sum = 0.0;
    for (std::int64_t c = lane; c < classes; c += device::kWarpThreads)
      sum +=
          exp_of_negative(static_cast<double>(device::to_float(from[c * class_stride])) - static_cast<double>(largest));
    sum = device::warp_sum(sum);
    const bool any_nan = __all_sync(device::kAllLanes, !has_nan) == 0;
    if (lane == 0) keys[row] = confidence_key(static_cast<double>(largest), sum, any_nan);
  }
}

/// Each block ranks kThreadsPerBlock rows, and takes the keys of all through shared memory.
__global__ void rank_rows(const std::uint64_t* keys, std::int64_t rows, std::int64_t wanted, std::int64_t* chosen,
                          std::int64_t* places) {
  TANDEM_SHARED(std::uint64_t, tile, [kThreadsPerBlock]);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreadsPerBlock; first < rows;
       first += device::threads_in_grid()) {
    const std::int64_t row = first + thread;
    const std::uint64_t own = row < rows ? keys[row] : 0;
    std::int64_t rank = 0;
    for (std::int64_t start = 0; start < rows; start += kThreadsPerBlock) {
      if (start + thread < rows) tile[thread] = keys[start + thread];
      __syncthreads();
      const int count = static_cast<int>(rows - start < kThreadsPerBlock ? rows - start : kThreadsPerBlock);
      for (int i = 0; i < count; ++i) rank += tile[i] < own || (tile[i] == own && start + i < row) ? 1 : 0;
      __syncthreads();
    }
    if (row >= rows) continue;
    if (rank < wanted) chosen[rank] = row;
    places[row] = rank < wanted ? rows + rank : row;
  }
}

}  // namespace

void least_confident(const Tensor& logits, const Out& chosen, const Out& places) {
  const std::int64_t rows = logits.size(0);
  const cudaStream_t stream = tandem::cuda::current_stream(logits);
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor memory = Tensor::empty({rows}, {.dtype = DType::i64, .device = logits.device()});
  auto* const keys = static_cast<std::uint64_t*>(Out(memory).raw_data());
  device::dispatch(logits.dtype(), "least_confident", [&]<typename T>(TypeTag<T>) {
    launch(key_rows<T>, {device::blocks_for(rows, kThreadsPerBlock / device::kWarpThreads), kThreadsPerBlock}, stream,
           logits.data<T>(), logits.stride(0), logits.stride(1), rows, logits.size(1), keys);
  });
  launch(rank_rows, {device::blocks_for(rows, kThreadsPerBlock), kThreadsPerBlock}, stream,
         static_cast<const std::uint64_t*>(keys), rows, chosen.size(0), chosen.data<std::int64_t>(),
         places.data<std::int64_t>());
}

}  // namespace tandem::kernels::cuda
