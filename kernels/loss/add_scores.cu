// Sums of loss and accuracy on a GPU: a warp takes a row, and one thread of the grid adds up what is no sum over rows.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/any_floats.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/loss/add_scores_implementations.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;
using device::kWarpThreads;

template <typename T>
struct Rows {
  const T* logits = nullptr;
  std::int64_t row_stride = 0, class_stride = 0;
  const std::int64_t* labels = nullptr;
  std::int64_t label_stride = 0, rows = 0;
  int classes = 0;
};

/// Whether the largest element of a row stands at its label; the same answer for all lanes of a warp.
template <typename T>
__device__ bool is_correct(const Rows<T>& r, std::int64_t row, int lane) {
  const T* const from = r.logits + row * r.row_stride;
  float best = -INFINITY;
  int place = r.classes;  // of this lane's largest
  bool has_nan = false;
  for (int c = lane; c < r.classes; c += kWarpThreads) {
    const float value = device::to_float(from[c * r.class_stride]);
    has_nan = has_nan || !(fabsf(value) <= INFINITY);
    if (place < r.classes && !(value > best)) continue;
    best = value;
    place = c;
  }
  const float largest = device::warp_max(best);
  const int first =
      device::warp_reduce(best == largest ? place : r.classes, [](int a, int b) { return a < b ? a : b; });
  return r.classes > 0 && __all_sync(device::kAllLanes, !has_nan) != 0 && first == r.labels[row * r.label_stride];
}

template <typename T>
__global__ void score_rows(Rows<T> r, device::AnyFloats loss, BatchCount count, ScoreSums* sums) {
  constexpr int kRowsOfBlock = kThreadsPerBlock / kWarpThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  int correct = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarpThreads;
       row < r.rows; row += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    if (is_correct(r, row, lane) && lane == 0) ++correct;
  }
  correct = device::block_sum<kThreadsPerBlock>(correct);
  if (threadIdx.x != 0) return;
  // Of whole numbers, so that the order does not matter.
  if (correct > 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&sums->correct), static_cast<unsigned long long>(correct));
  if (blockIdx.x != 0) return;
  const double added = loss.load(0) * static_cast<double>(count.rows);  // exact, so that fused sums have its bits
  sums->loss_sum += added;
  sums->step_loss_sum = (count.begins_step ? 0.0 : sums->step_loss_sum) + added;
  sums->count += count.rows;
}

template <typename T>
void run(const Rows<T>& rows, const Tensor& loss, const BatchCount& count, const Out& sums) {
  const device::AnyFloats mean(loss.defined() ? loss.view({}) : loss);
  launch(score_rows<T>, {device::blocks_for(rows.rows, kThreadsPerBlock / kWarpThreads), kThreadsPerBlock},
         tandem::cuda::current_stream(sums), rows, mean, count, static_cast<ScoreSums*>(sums.raw_data()));
}

}  // namespace

void add_scores(const Tensor& loss, const Tensor& logits, const Tensor& labels, const BatchCount& count,
                const Out& sums) {
  if (!logits.defined()) return run(Rows<float>{}, loss, count, sums);
  device::dispatch(logits.dtype(), "add_scores", [&]<typename T>(TypeTag<T>) {
    run(Rows<T>{.logits = logits.data<T>(),
                .row_stride = logits.stride(0),
                .class_stride = logits.stride(1),
                .labels = labels.data<std::int64_t>(),
                .label_stride = labels.stride(0),
                .rows = logits.size(0),
                .classes = static_cast<int>(logits.size(1))},
        loss, count, sums);
  });
}

}  // namespace tandem::kernels::cuda
