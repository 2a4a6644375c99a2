// Adding up per channel: over the threads of a block, then over the chunks of the rows, each in a fixed order. What is
// added are totals of kFields doubles, joined by a function join(all, more).
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/memory.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/norm/channel_grid.cuh"

namespace tandem::kernels::cuda {

template <int kFields>
struct Totals {
  double fields[kFields] = {};
};

/// Partial totals of each chunk, [field][chunk][channel], in doubles.
inline Tensor make_partial_totals(int fields, const ChannelGrid& grid, Device device) {
  const MemoryTagScope scope(MemoryTag::workspace);
  return Tensor::empty({fields, grid.chunks, grid.channels}, {.dtype = DType::f64, .device = device});
}

/// Joins the totals of a block's threads as a tree, and writes those of its channels to its chunk's place. All threads
/// must call it.
template <int kWidth, int kFields, typename Join>
__device__ void store_block_totals(const ChannelGrid& grid, const ChannelPlace& place,
                                   const Totals<kFields> (&own)[kWidth], Join&& join, double* partials) {
  constexpr int kColumns = kThreads + 4;  // 4 more, so that the channels of a thread lie in different banks
  TANDEM_SHARED(double, totals, [kFields][kWidth][kColumns]);
  const int thread = static_cast<int>(threadIdx.x);
  const auto read = [&](int v, int column) {
    Totals<kFields> result;
#pragma unroll
    for (int f = 0; f < kFields; ++f) result.fields[f] = totals[f][v][column];
    return result;
  };
  const auto write = [&](int v, const Totals<kFields>& value) {
#pragma unroll
    for (int f = 0; f < kFields; ++f) totals[f][v][thread] = value.fields[f];
  };
#pragma unroll
  for (int v = 0; v < kWidth; ++v) write(v, own[v]);

  int step = 1;
  while (2 * step < grid.row_threads) step *= 2;
  for (; step > 0; step /= 2) {
    __syncthreads();
    if (place.row_thread >= step || place.row_thread + step >= grid.row_threads) continue;
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      Totals<kFields> all = read(v, thread);
      join(all, read(v, thread + step * grid.lanes));
      write(v, all);
    }
  }
  __syncthreads();
  // In the order of the channels, so that what a warp writes lies side by side.
  const int first = static_cast<int>(blockIdx.x) * grid.lanes * kWidth;
  for (int i = thread; i < grid.lanes * kWidth && first + i < grid.channels; i += kThreads) {
#pragma unroll
    for (int f = 0; f < kFields; ++f) {
      partials[(static_cast<std::int64_t>(f) * grid.chunks + blockIdx.y) * grid.channels + first + i] =
          totals[f][i % kWidth][i / kWidth];
    }
  }
}

constexpr int kJoinLanes = 4;                       // channels of a block that joins chunks
constexpr int kJoinSlices = kThreads / kJoinLanes;  // threads that share out the chunks of a channel
static_assert(kThreads % kJoinLanes == 0 && (kJoinSlices & (kJoinSlices - 1)) == 0, "a tree of all threads");

inline unsigned join_blocks(const ChannelGrid& grid) {
  return static_cast<unsigned>((grid.channels + kJoinLanes - 1) / kJoinLanes);
}

/// Joins the partial totals of the chunks [first, end): every kJoinSlices-th by one thread, then those of the threads
/// as a tree. Calls finish(channel, totals) in one thread per channel; all threads of join_blocks() blocks must call
/// it, each with the number of its block.
template <int kFields, typename Join, typename Finish>
__device__ void join_chunks(const ChannelGrid& grid, unsigned block, int first, int end, const double* partials,
                            Join&& join, Finish&& finish) {
  TANDEM_SHARED(double, totals, [kFields][kJoinSlices][kJoinLanes]);
  const int lane = static_cast<int>(threadIdx.x) % kJoinLanes, slice = static_cast<int>(threadIdx.x) / kJoinLanes;
  const int channel = static_cast<int>(block) * kJoinLanes + lane;
  Totals<kFields> all;
  if (channel < grid.channels) {
    for (int chunk = first + slice; chunk < end; chunk += kJoinSlices) {
      Totals<kFields> more;
#pragma unroll
      for (int f = 0; f < kFields; ++f) {
        more.fields[f] = partials[(static_cast<std::int64_t>(f) * grid.chunks + chunk) * grid.channels + channel];
      }
      join(all, more);
    }
  }
  const auto write = [&] {
#pragma unroll
    for (int f = 0; f < kFields; ++f) totals[f][slice][lane] = all.fields[f];
  };
  write();
  for (int step = kJoinSlices / 2; step > 0; step /= 2) {
    __syncthreads();
    if (slice >= step) continue;
    Totals<kFields> more;
#pragma unroll
    for (int f = 0; f < kFields; ++f) more.fields[f] = totals[f][slice + step][lane];
    join(all, more);
    write();
  }
  if (slice == 0 && channel < grid.channels) finish(channel, all);
}

/// The same for all chunks.
template <int kFields, typename Join, typename Finish>
__device__ void join_chunks(const ChannelGrid& grid, unsigned block, const double* partials, Join&& join,
                            Finish&& finish) {
  join_chunks<kFields>(grid, block, 0, grid.chunks, partials, join, finish);
}

}  // namespace tandem::kernels::cuda
