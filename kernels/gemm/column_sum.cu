// Column sums in two launches: blocks sum up chunks of rows, then the chunks.
#include "tandem/kernels/gemm/column_sum.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/gemm/gate.cuh"

#include <algorithm>

namespace tandem::kernels::cuda {
namespace {

constexpr int kColumns = 32;  // of a block: neighbouring threads read neighbouring columns
constexpr int kLanes = 8;     // rows that a block reads at once
constexpr std::int64_t kLeastChunk = 64;
constexpr std::int64_t kMostChunks = 512;

/// sums[chunk, column] = sum of that chunk's rows: each lane takes every eighth row, then the lanes are added in order.
template <typename From, typename To>
__global__ void __launch_bounds__(kColumns* kLanes)
    sum_chunks(const From* values, Gate<From> gate, std::int64_t rows, std::int64_t columns, std::int64_t chunk_rows,
               To* sums) {
  TANDEM_SHARED(float, of_lanes, [kLanes][kColumns]);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread / kColumns, in_block = thread % kColumns;
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumns + in_block;
  const std::int64_t begin = blockIdx.y * chunk_rows;
  const std::int64_t end = begin + chunk_rows < rows ? begin + chunk_rows : rows;
  float sum = 0.0f;
  for (std::int64_t row = begin + lane; column < columns && row < end; row += kLanes) {
    device::Vector<float, 1> value = load_floats<1>(values + row * columns + column);
    gate.apply(value, row * columns + column);
    sum += value[0];
  }
  of_lanes[lane][in_block] = sum;
  __syncthreads();
  if (lane != 0 || column >= columns) return;
#pragma unroll
  for (int other = 1; other < kLanes; ++other) sum += of_lanes[other][in_block];
  sums[blockIdx.y * columns + column] = device::from_float<To>(sum);
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
  if (chunks == 1)
    return launch(sum_chunks<From, To>, {across, kColumns * kLanes}, stream, values.data<From>(), open, rows, columns,
                  chunk_rows, sums.data<To>());
  const MemoryTagScope tag_scope(MemoryTag::workspace);
  const Out parts(Tensor::empty({chunks, columns}, {.device = values.device()}));
  launch(sum_chunks<From, float>, {dim3(across, static_cast<unsigned>(chunks)), kColumns * kLanes}, stream,
         values.data<From>(), open, rows, columns, chunk_rows, parts.data<float>());
  launch(sum_chunks<float, To>, {across, kColumns * kLanes}, stream, parts.data<float>(), Gate<float>{}, chunks,
         columns, chunks, sums.data<To>());
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
