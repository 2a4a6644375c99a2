// Column sums in one launch: blocks sum up chunks of rows, then others the chunks.
#include "tandem/kernels/gemm/column_sum.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/phases.cuh"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/gemm/gate.cuh"

#include <algorithm>

namespace tandem::kernels::cuda {
namespace {

constexpr int kColumns = 32;  // of a block: neighbouring threads read neighbouring columns
constexpr int kLanes = 8;     // rows that a block reads at once
constexpr std::int64_t kLeastChunk = 64;
constexpr std::int64_t kMostChunks = 512;

/// Rows of a matrix, and which of its elements count.
template <typename T>
struct GatedRows {
  const T* values;
  Gate<T> gate;
  std::int64_t rows;
};

/// The sum of the rows [begin, end) of a column: each lane takes every eighth row, then the lanes are added in order.
/// All threads call it; those of lane 0 get it, for the column of theirs among the kColumns from `first` on.
template <typename T>
__device__ float column_total(const GatedRows<T>& from, std::int64_t columns, std::int64_t first, std::int64_t begin,
                              std::int64_t end, float (&of_lanes)[kLanes][kColumns]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread / kColumns, in_block = thread % kColumns;
  const std::int64_t column = first + in_block;
  if (end > from.rows) end = from.rows;
  float sum = 0.0f;
  for (std::int64_t row = begin + lane; column < columns && row < end; row += kLanes) {
    device::Vector<float, 1> value = load_floats<1>(from.values + row * columns + column);
    from.gate.apply(value, row * columns + column);
    sum += value[0];
  }
  of_lanes[lane][in_block] = sum;
  __syncthreads();
  if (lane != 0) return 0.0f;
#pragma unroll
  for (int other = 1; other < kLanes; ++other) sum += of_lanes[other][in_block];
  return sum;
}

/// Of all rows at once, a block for kColumns columns.
template <typename From, typename To>
__global__ void __launch_bounds__(kColumns* kLanes)
    sum_rows_of_columns(GatedRows<From> from, std::int64_t columns, To* sums) {
  TANDEM_SHARED(float, of_lanes, [kLanes][kColumns]);
  const std::int64_t first = std::int64_t{blockIdx.x} * kColumns, column = first + threadIdx.x;
  const float sum = column_total(from, columns, first, 0, from.rows, of_lanes);
  if (threadIdx.x < kColumns && column < columns) sums[column] = device::from_float<To>(sum);
}

/// parts[chunk, column] = sum of that chunk's rows, and behind these sums[column] = that of the parts. A block for
/// kColumns columns and a chunk, then one for kColumns columns.
template <typename From, typename To>
__global__ void __launch_bounds__(kColumns* kLanes)
    sum_chunks(GatedRows<From> from, std::int64_t columns, std::int64_t chunk_rows, unsigned across, unsigned chunks,
               device::Phases phases, float* parts, To* sums) {
  TANDEM_SHARED(float, of_lanes, [kLanes][kColumns]);
  const unsigned turn = phases.begin(), chunk = turn / across;
  const std::int64_t first = std::int64_t{turn % across} * kColumns, column = first + threadIdx.x;
  const bool has_column = threadIdx.x < kColumns && column < columns;
  if (chunk < chunks) {
    const float sum = column_total(from, columns, first, chunk * chunk_rows, (chunk + 1) * chunk_rows, of_lanes);
    if (has_column) parts[chunk * columns + column] = sum;
    return phases.finish();
  }
  phases.await_last(across * chunks, across);
  const float sum = column_total(GatedRows<float>{parts, {}, chunks}, columns, first, 0, chunks, of_lanes);
  if (has_column) sums[column] = device::from_float<To>(sum);
}

/// Enough chunks to keep a large GPU busy, and few enough to be summed up by one block for each kColumns columns.
template <typename From, typename To>
void sum_in_chunks(std::int64_t rows, std::int64_t columns, const Tensor& values, const Gate<From>& open,
                   const Out& sums) {
  if (columns == 0) return;
  const std::int64_t chunk_rows = std::max(kLeastChunk, (rows + kMostChunks - 1) / kMostChunks);
  const std::int64_t chunks = std::max<std::int64_t>((rows + chunk_rows - 1) / chunk_rows, 1);
  const unsigned across = static_cast<unsigned>((columns + kColumns - 1) / kColumns);
  const auto stream = tandem::cuda::current_stream(values);
  const GatedRows<From> from{values.data<From>(), open, rows};
  if (chunks == 1)
    return launch(sum_rows_of_columns<From, To>, {across, kColumns * kLanes}, stream, from, columns, sums.data<To>());
  const MemoryTagScope tag_scope(MemoryTag::workspace);
  const Out parts(Tensor::empty({chunks, columns}, {.device = values.device()}));
  launch(sum_chunks<From, To>, {across * static_cast<unsigned>(chunks + 1), kColumns * kLanes}, stream, from, columns,
         chunk_rows, across, static_cast<unsigned>(chunks), device::Phases(stream), parts.data<float>(),
         sums.data<To>());
}

}  // namespace

void column_sum(std::int64_t rows, std::int64_t columns, const Tensor& values, const Tensor& gate, const Out& sums) {
  device::dispatch(values.dtype(), "bias gradient", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Gate<T> open;
    if (gate.defined() && gate.dtype() == DType::u8) {
      open.bits = gate.data<std::uint8_t>();
    } else if (gate.defined()) {
      open.output = gate.data<T>();
    }
    sum_in_chunks<T, T>(rows, columns, values, open, sums);
  });
}

void column_sum_of_parts(const Tensor& parts, const Out& sums) {
  device::dispatch(sums.dtype(), "bias gradient", [&](auto tag) {
    using T = typename decltype(tag)::type;
    sum_in_chunks<float, T>(parts.size(0), parts.size(1), parts, Gate<float>{}, sums);
  });
}

}  // namespace tandem::kernels::cuda
