// Sums of strided elements in CUDA, added up in f64 (integers in 64 bits): along rows (neighbours in memory belong to
// one sum) and down columns (neighbours belong to neighbouring sums). A sum can be cut into parts, one a block, for a
// second launch to add up.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/reduce/accumulator.h"

#include <algorithm>

namespace tandem::kernels::cuda {

/// Where sums go: rounded to `dtype` (f64 for parts of sums) after division by `divisor`; sums of integers go to i64 as
/// they are. The parts of a sum are `part_step` elements apart.
struct SumOutput {
  void* data;
  DType dtype;
  double divisor;
  std::int64_t part_step;
};

namespace {

/// An element as a term of a sum.
template <typename T>
__device__ Accumulator<T> to_term(T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
    return static_cast<Accumulator<T>>(value);
  else
    return static_cast<double>(device::to_float(value));
}

__device__ void store_sum(const SumOutput& out, std::int64_t offset, std::uint64_t sum) {
  static_cast<std::int64_t*>(out.data)[offset + blockIdx.y * out.part_step] = static_cast<std::int64_t>(sum);
}

__device__ void store_sum(const SumOutput& out, std::int64_t offset, double sum) {
  offset += blockIdx.y * out.part_step;
  const double value = sum / out.divisor;
  const auto rounded = static_cast<float>(value);
  switch (out.dtype) {
    case DType::f64:
      static_cast<double*>(out.data)[offset] = value;
      return;
    case DType::f32:
      static_cast<float*>(out.data)[offset] = rounded;
      return;
    case DType::f16:
      static_cast<Half*>(out.data)[offset] = device::from_float<Half>(rounded);
      return;
    default:
      static_cast<BFloat16*>(out.data)[offset] = device::from_float<BFloat16>(rounded);
  }
}

/// kThreads threads (a warp or a block) per sum; block row y adds the terms [y, y + 1) * per_part. `sums` has the
/// operands x and out. `terms` counts vectors of kWidth elements; `tail` elements follow the last.
template <int kThreads, int kWidth, typename T>
__global__ void sum_rows(const T* x, device::Nest<2> sums, device::Nest<1> terms, unsigned tail, unsigned per_part,
                         SumOutput out) {
  constexpr unsigned kSums = device::kThreadsPerBlock / kThreads;
  const unsigned lane = threadIdx.x % kThreads;
  const unsigned first = blockIdx.y * per_part, last = min(first + per_part, terms.count);
  const unsigned k = blockIdx.x * kSums + threadIdx.x / kThreads;
  if (k >= sums.count) return;  // whole warps; a block that shares one sum never
  const auto at = device::offsets_of(sums, k);
  const T* const row = x + at.offset[0];
  Accumulator<T> sum = 0;
#pragma unroll 4
  for (unsigned i = first + lane; i < last; i += kThreads) {
    const auto values = device::load_vector<kWidth>(row + device::offsets_of(terms, i).offset[0]);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum += to_term(values[j]);
  }
  if (blockIdx.y + 1 == gridDim.y && lane < tail) sum += to_term(row[std::int64_t{terms.count} * kWidth + lane]);
  if constexpr (kThreads == device::kWarpThreads) {
    sum = device::warp_sum(sum);
  } else {
    sum = device::block_sum<kThreads>(sum);
  }
  if (lane == 0) store_sum(out, at.offset[1], sum);
}

/// `lanes` sums per block (a power of two), one for each of as many threads that stand side by side; the others of the
/// block take other terms.
template <typename T>
__global__ void sum_columns(const T* x, device::Nest<2> sums, device::Nest<1> terms, unsigned lanes, unsigned per_part,
                            SumOutput out) {
  TANDEM_SHARED(Accumulator<T>, partial, [device::kThreadsPerBlock]);
  const unsigned thread = threadIdx.x, row = thread / lanes, rows = device::kThreadsPerBlock / lanes;
  const unsigned first = blockIdx.y * per_part, last = min(first + per_part, terms.count);
  const unsigned k = blockIdx.x * lanes + thread % lanes;
  const bool has_sum = k < sums.count;
  const auto at = device::offsets_of(sums, has_sum ? k : 0);
  Accumulator<T> sum = 0;
  if (has_sum) {
#pragma unroll 4
    for (unsigned i = first + row; i < last; i += rows)
      sum += to_term(x[at.offset[0] + device::offsets_of(terms, i).offset[0]]);
  }
  partial[thread] = sum;
  for (unsigned distance = rows / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (row < distance) partial[thread] += partial[thread + distance * lanes];
  }
  if (row == 0 && has_sum) store_sum(out, at.offset[1], partial[thread]);
}

}  // namespace

}  // namespace tandem::kernels::cuda
