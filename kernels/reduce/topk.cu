// The largest or smallest elements of each row on CUDA: the best one by comparisons in a tree, several by a radix
// select of the least of their keys (Alabi, Blanchard, Gordon, Steinbach: "Fast k-selection algorithms for graphics
// processing units", 2012) and a bitonic sort. Keys differ, so that the order in which threads come does not matter.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/reduce/rank_key.h"
#include "tandem/kernels/reduce/topk_implementations.h"

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock, device::kWarpThreads;

constexpr int kDigits = 256;                  // of a radix of 8 bits: one per thread
constexpr std::int64_t kKeysInShared = 1024;  // more are sorted in global memory
static_assert(kDigits == kThreadsPerBlock);

/// Rows of x and what becomes of them; `values` may be null.
template <typename T>
struct Rows {
  const T* x;
  std::int64_t rows, columns, k;
  bool largest, sorted;
  T* values;
  std::int64_t* indices;

  __device__ std::uint64_t key(std::int64_t row, std::int64_t i) const {
    return rank_key(device::to_float(x[row * columns + i]), static_cast<std::uint32_t>(i), largest);
  }

  __device__ void store(std::int64_t row, std::int64_t j, std::uint64_t key) const {
    const std::int64_t place = index_of(key);
    indices[row * k + j] = place;
    if (values != nullptr) values[row * k + j] = x[row * columns + place];
  }
};

/// The best element of each row, by kThreads threads: a warp or a block.
template <int kThreads, typename T>
__global__ void best_of_rows(Rows<T> rows) {
  const auto better = [](std::uint64_t a, std::uint64_t b) { return a < b ? b : a; };
  const std::int64_t step = device::threads_in_grid() / kThreads;
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  for (std::int64_t row = device::thread_in_grid() / kThreads; row < rows.rows; row += step) {
    std::uint64_t best = 0;
    for (std::int64_t i = lane; i < rows.columns; i += kThreads) best = better(best, rows.key(row, i));
    if constexpr (kThreads == kWarpThreads) {
      best = device::warp_reduce(best, better);
    } else {
      best = device::block_reduce<kThreads>(best, std::uint64_t{0}, better);
    }
    if (lane == 0) rows.store(row, 0, best);
  }
}

/// Which keys of a row are the best: those that are not below `least` where the bits of `mask` are set.
struct Threshold {
  std::uint64_t least = 0, mask = 0;
};

/// Finds the k-th greatest key of a row, digit by digit from the top. All threads of the block call it.
template <typename T>
__device__ Threshold find_threshold(const Rows<T>& rows, std::int64_t row) {
  TANDEM_SHARED(unsigned, counts, [kDigits]);
  TANDEM_SHARED(unsigned, found, [3]);
  Threshold threshold;
  const unsigned thread = threadIdx.x;
  unsigned wanted = static_cast<unsigned>(rows.k);
  for (int shift = 56; shift >= 0; shift -= 8) {
    counts[thread] = 0;
    __syncthreads();
    for (std::int64_t i = thread; i < rows.columns; i += kDigits) {
      const std::uint64_t key = rows.key(row, i);
      if ((key & threshold.mask) == threshold.least) atomicAdd(&counts[key >> shift & (kDigits - 1)], 1u);
    }
    __syncthreads();
    // Of each digit, how many keys have it or a greater one.
    for (unsigned distance = 1; distance < kDigits; distance *= 2) {
      const unsigned more = thread + distance < kDigits ? counts[thread + distance] : 0;
      __syncthreads();
      counts[thread] += more;
      __syncthreads();
    }
    const unsigned above = thread + 1 < kDigits ? counts[thread + 1] : 0;
    if (above < wanted && wanted <= counts[thread]) {
      found[0] = thread;
      found[1] = above;
      found[2] = counts[thread];
    }
    __syncthreads();
    threshold.least |= std::uint64_t{found[0]} << shift;
    threshold.mask |= std::uint64_t{kDigits - 1} << shift;
    const bool all = found[2] == wanted;  // every key that begins like this is one of the best
    wanted -= found[1];
    __syncthreads();
    if (all) break;
  }
  return threshold;
}

/// Sorts `count` keys, a power of two, the greatest first. All threads of the block call it.
__device__ void sort_keys(std::uint64_t* keys, std::int64_t count) {
  for (std::int64_t size = 2; size <= count; size *= 2) {
    for (std::int64_t distance = size / 2; distance > 0; distance /= 2) {
      for (std::int64_t i = threadIdx.x; i < count / 2; i += kThreadsPerBlock) {
        const std::int64_t low = 2 * i - (i & (distance - 1)), high = low + distance;
        const std::uint64_t a = keys[low], b = keys[high];
        if ((a < b) != ((low & size) == 0)) continue;
        keys[low] = b;
        keys[high] = a;
      }
      __syncthreads();
    }
  }
}

/// The best `k` elements of each row, by a block. `room`: null, or memory for `padded` keys of each block, the power of
/// two from k on.
template <typename T>
__global__ void best_of_row(Rows<T> rows, std::uint64_t* room, std::int64_t padded) {
  TANDEM_SHARED(std::uint64_t, keys_in_shared, [kKeysInShared]);
  TANDEM_SHARED(unsigned, taken);
  std::uint64_t* const keys = room == nullptr ? keys_in_shared : room + blockIdx.x * padded;
  for (std::int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    const Threshold threshold = find_threshold(rows, row);
    if (threadIdx.x == 0) taken = 0;
    for (std::int64_t i = rows.k + threadIdx.x; i < padded; i += kThreadsPerBlock) keys[i] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < rows.columns; i += kThreadsPerBlock) {
      const std::uint64_t key = rows.key(row, i);
      if ((key & threshold.mask) >= threshold.least) keys[atomicAdd(&taken, 1u)] = rows.sorted ? key : swap_halves(key);
    }
    __syncthreads();
    sort_keys(keys, padded);
    for (std::int64_t j = threadIdx.x; j < rows.k; j += kThreadsPerBlock)
      rows.store(row, j, rows.sorted ? keys[j] : swap_halves(keys[j]));
    __syncthreads();
  }
}

template <typename T>
__global__ void scatter_rows(const T* values, const std::int64_t* indices, std::int64_t count, std::int64_t k, T* rows,
                             std::int64_t columns) {
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid())
    rows[i / k * columns + indices[i]] = values[i];
}

template <typename T>
void find_best_one(const Rows<T>& rows, cudaStream_t stream) {
  constexpr std::int64_t kLongRow = 1024;  // a block is worth it
  if (rows.columns >= kLongRow)
    return launch(best_of_rows<kThreadsPerBlock, T>, {device::blocks_for(rows.rows, 1), kThreadsPerBlock}, stream,
                  rows);
  const unsigned blocks = device::blocks_for(rows.rows, kThreadsPerBlock / kWarpThreads);
  launch(best_of_rows<kWarpThreads, T>, {blocks, kThreadsPerBlock}, stream, rows);
}

template <typename T>
void find_best(const Rows<T>& rows, Device device, cudaStream_t stream) {
  std::int64_t padded = 1;
  while (padded < rows.k) padded *= 2;
  const unsigned blocks = device::blocks_for(rows.rows, 1);
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor room = padded <= kKeysInShared
                          ? Tensor()
                          : Tensor::empty({std::int64_t{blocks}, padded}, {.dtype = DType::i64, .device = device});
  auto* const keys = room.defined() ? static_cast<std::uint64_t*>(Out(room).raw_data()) : nullptr;
  launch(best_of_row<T>, {blocks, kThreadsPerBlock}, stream, rows, keys, padded);
}

}  // namespace

void topk(const Tensor& x, const TopkOptions& options, const Out& values, const Out& indices) {
  device::dispatch(x.dtype(), "topk", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Rows<T> rows{.x = x.data<T>(),
                       .rows = x.size(0),
                       .columns = x.size(1),
                       .k = indices.size(1),
                       .largest = options.largest,
                       .sorted = options.sorted,
                       .values = values.defined() ? values.data<T>() : nullptr,
                       .indices = indices.data<std::int64_t>()};
    const cudaStream_t stream = tandem::cuda::current_stream(x);
    if (rows.k == 1) return find_best_one(rows, stream);
    find_best(rows, x.device(), stream);
  });
}

void topk_backward(const Tensor& grad_values, const Tensor& indices, const Out& grad_x) {
  device::dispatch(grad_x.dtype(), "topk_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(scatter_rows<T>, {device::blocks_for(indices.numel(), device::kThreadsPerBlock), device::kThreadsPerBlock},
           tandem::cuda::current_stream(grad_x), grad_values.data<T>(), indices.data<std::int64_t>(), indices.numel(),
           indices.size(1), grad_x.data<T>(), grad_x.size(1));
  });
}

}  // namespace tandem::kernels::cuda
