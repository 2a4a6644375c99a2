// How kernels cut a [rows, channels] matrix up: a block takes a tile of channels and a chunk of the rows; neighbouring
// threads have neighbouring channels of a row. The cut depends on the shape alone, so results do not depend on the GPU.
#pragma once

#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

#include <type_traits>

namespace tandem::kernels::cuda {

constexpr int kThreads = device::kThreadsPerBlock;
constexpr int kMostLanes = 64;    // threads side by side in a row
constexpr int kRowsAtOnce = 4;    // rows that a thread loads before it works on them
constexpr int kChannelWidth = 4;  // channels of a thread, where vectors are possible

struct ChannelGrid {
  std::int64_t rows, rows_per_chunk;
  int channels, lanes, row_threads;
  int tiles, chunks;

  /// At most `most_blocks` blocks, or one per tile of channels.
  ChannelGrid(std::int64_t row_count, std::int64_t channel_count, int width, std::int64_t most_blocks)
      : rows(row_count), channels(static_cast<int>(channel_count)) {
    require(channel_count < (1 << 30), "batch_norm: {} channels are too many for a GPU", channel_count);
    const int groups = channels / width;
    tiles = (groups + kMostLanes - 1) / kMostLanes;
    lanes = (groups + tiles - 1) / tiles;
    row_threads = kThreads / lanes;
    const std::int64_t at_once = row_threads * kRowsAtOnce;
    const std::int64_t most_chunks = std::clamp<std::int64_t>(most_blocks / tiles, 1, (rows + at_once - 1) / at_once);
    rows_per_chunk = ((rows + most_chunks - 1) / most_chunks + row_threads - 1) / row_threads * row_threads;
    chunks = static_cast<int>((rows + rows_per_chunk - 1) / rows_per_chunk);
  }

  unsigned blocks() const { return static_cast<unsigned>(tiles) * static_cast<unsigned>(chunks); }
  dim3 grid() const { return dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(chunks)); }
};

/// A thread's place: its block's tile of channels, its lane in the tile, its first channel and its rows [row, end), in
/// steps of grid.row_threads. Threads without a place have no rows.
struct ChannelPlace {
  int tile, lane, row_thread, channel;
  std::int64_t row, end;

  /// In a launch of grid.grid().
  __device__ ChannelPlace(const ChannelGrid& grid, int width) : ChannelPlace(grid, width, blockIdx.x, blockIdx.y) {}

  /// The block takes this tile and this chunk.
  __device__ ChannelPlace(const ChannelGrid& grid, int width, unsigned tile_number, unsigned chunk)
      : tile(static_cast<int>(tile_number)) {
    lane = static_cast<int>(threadIdx.x) % grid.lanes;
    row_thread = static_cast<int>(threadIdx.x) / grid.lanes;
    channel = (tile * grid.lanes + lane) * width;
    const std::int64_t first = chunk * grid.rows_per_chunk;
    row = first + row_thread;
    end = row_thread < grid.row_threads && channel < grid.channels ? min(first + grid.rows_per_chunk, grid.rows) : row;
  }
};

/// Calls visit(row, count) for kRowsAtOnce rows at a time: row, row + grid.row_threads, ...; count < kRowsAtOnce only
/// at the end.
template <typename Visit>
__device__ void for_each_rows(const ChannelGrid& grid, const ChannelPlace& place, Visit&& visit) {
  const std::int64_t step = static_cast<std::int64_t>(grid.row_threads) * kRowsAtOnce;
  for (std::int64_t row = place.row; row < place.end; row += step) {
    const std::int64_t left = (place.end - row + grid.row_threads - 1) / grid.row_threads;
    visit(row, left < kRowsAtOnce ? static_cast<int>(left) : kRowsAtOnce);
  }
}

/// kRowsAtOnce rows of a thread's channels.
template <int kWidth>
using Rows = float[kRowsAtOnce][kWidth];

/// Those behind `count` are zero.
template <int kWidth, typename T>
__device__ void load_rows(const T* matrix, const ChannelGrid& grid, int channel, std::int64_t row, int count,
                          Rows<kWidth>& values) {
#pragma unroll
  for (int k = 0; k < kRowsAtOnce; ++k) {
    device::Vector<T, kWidth> loaded{};
    if (k < count)
      loaded = device::load_vector<kWidth>(matrix + (row + k * grid.row_threads) * grid.channels + channel);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) values[k][v] = device::to_float(loaded[v]);
  }
}

template <int kWidth, typename T>
__device__ void store_rows(T* matrix, const ChannelGrid& grid, int channel, std::int64_t row, int count,
                           const Rows<kWidth>& values) {
#pragma unroll
  for (int k = 0; k < kRowsAtOnce; ++k) {
    if (k >= count) continue;
    device::Vector<T, kWidth> out;
#pragma unroll
    for (int v = 0; v < kWidth; ++v) out[v] = device::from_float<T>(values[k][v]);
    device::store_vector(matrix + (row + k * grid.row_threads) * grid.channels + channel, out);
  }
}

/// Calls visit with the number of channels per thread, as an integral_constant: kChannelWidth where the number of
/// channels and all addresses allow vectors, else 1.
template <typename Visit, typename... Pointers>
void dispatch_channel_width(std::int64_t channels, Visit&& visit, Pointers... pointers) {
  if (channels % kChannelWidth == 0 && device::aligned_for_vectors(pointers...)) {
    return visit(std::integral_constant<int, kChannelWidth>{});
  }
  visit(std::integral_constant<int, 1>{});
}

}  // namespace tandem::kernels::cuda
