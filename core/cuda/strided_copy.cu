// Copies between any two strided tensors on one device.
#include "tandem/core/cuda/copy.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/shared.h"
#include "tandem/core/cuda/transpose_tile.h"
#include "tandem/core/cuda/word_loop.cuh"

namespace tandem::cuda {

namespace {

/// One word per thread and step, in the order of the destination: writes are coalesced.
template <typename Word, typename Index>
__global__ void copy_words(Word* to, const Word* from, DeviceLoop<Index> loop) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < loop.count; i += step) {
    const WordPlace<Index> place(loop, i);
    to[place.to] = from[place.from];
  }
}

/// Two dimensions, `column` the quickest of the destination and `row` that of the source, inside a loop over the
/// others.
template <typename Index>
struct TransposeLoop {
  DeviceLoop<Index> outer;
  Index columns, column_to, column_from;
  Index rows, row_to, row_from;
};

template <typename Word>
constexpr unsigned kWordsPerBank = sizeof(Word) < 4 ? 4 / sizeof(Word) : 1;

/// Tile by tile through shared memory: reads and writes are both coalesced, and free of bank conflicts.
template <typename Word, typename Index>
__global__ void transpose_words(Word* to, const Word* from, TransposeLoop<Index> loop, TransposeTile tile) {
  TANDEM_SHARED(Word, words, [TransposeTile::kCapacity * kWordsPerBank<Word>]);
  const Index across = (loop.columns + tile.columns.size() - 1) / tile.columns.size();
  const Index down = (loop.rows + tile.rows.size() - 1) / tile.rows.size();
  const Index tiles = loop.outer.count * across * down;
  for (Index at = blockIdx.x; at < tiles; at += gridDim.x) {
    const Index first_column = at % across * tile.columns.size(), first_row = at / across % down * tile.rows.size();
    const WordPlace<Index> place(loop.outer, at / across / down);
    for (unsigned i = threadIdx.x; i < tile.words(); i += blockDim.x) {
      unsigned row = i;
      const unsigned column = tile.rows.split(row);
      if (first_column + column >= loop.columns || first_row + row >= loop.rows) continue;
      words[tile.place(column, row)] =
          from[place.from + (first_column + column) * loop.column_from + (first_row + row) * loop.row_from];
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < tile.words(); i += blockDim.x) {
      unsigned column = i;
      const unsigned row = tile.columns.split(column);
      if (first_column + column >= loop.columns || first_row + row >= loop.rows) continue;
      to[place.to + (first_column + column) * loop.column_to + (first_row + row) * loop.row_to] =
          words[tile.place(column, row)];
    }
    __syncthreads();
  }
}

/// The dimension of the source's neighbours, where that is not the destination's and a tile is worth its while; else
/// -1.
int transposed_dim(const detail::LoopNest& nest) {
  constexpr std::int64_t kWorthATile = 64;  // words
  const int last = nest.sizes.rank() - 1;
  if (nest.from[last] == 1) return -1;
  for (int dim = 0; dim < last; ++dim) {
    if (nest.from[dim] == 1 && nest.sizes[dim] * nest.sizes[last] >= kWorthATile) return dim;
  }
  return -1;
}

template <typename Index>
TransposeLoop<Index> make_transpose_loop(const detail::LoopNest& nest, int row_dim) {
  const int column_dim = nest.sizes.rank() - 1;
  WordLoop outer{};
  for (int dim = 0; dim < column_dim; ++dim) {
    if (dim == row_dim) continue;
    outer.nest.sizes.push_back(nest.sizes[dim]);
    outer.nest.to.push_back(nest.to[dim]);
    outer.nest.from.push_back(nest.from[dim]);
  }
  if (outer.nest.sizes.rank() == 0) {
    outer.nest.sizes.push_back(1);
    outer.nest.to.push_back(0);
    outer.nest.from.push_back(0);
  }
  const auto index = [](std::int64_t value) { return static_cast<Index>(value); };
  return {make_device_loop<Index>(outer), index(nest.sizes[column_dim]), index(nest.to[column_dim]),
          index(nest.from[column_dim]),   index(nest.sizes[row_dim]),    index(nest.to[row_dim]),
          index(nest.from[row_dim])};
}

}  // namespace

void strided_copy(const Out& to, const Tensor& from) {
  const cudaStream_t stream = current_stream(to);
  const WordLoop loop =
      make_word_loop(to.shape(), to.strides(), from.strides(), to.raw_data(), from.raw_data(), size_of(to.dtype()));
  const int row_dim = transposed_dim(loop.nest);
  dispatch_word_loop(loop, [&](auto word, const auto& device_loop) {
    using Word = typename decltype(word)::type;
    using Index = std::decay_t<decltype(device_loop.count)>;
    Word* const target = static_cast<Word*>(to.raw_data());
    const Word* const source = static_cast<const Word*>(from.raw_data());
    if constexpr (sizeof(Word) < sizeof(Word16)) {  // wide words mean that both sides have the same neighbours
      if (row_dim >= 0) {
        const TransposeTile tile(loop.nest.sizes[-1], loop.nest.sizes[row_dim], kWordsPerBank<Word>);
        const std::int64_t tile_words = std::int64_t{tile.columns.size()} * tile.rows.size();
        return launch(transpose_words<Word, Index>, {word_blocks(loop.count(), tile_words), kWordThreads}, stream,
                      target, source, make_transpose_loop<Index>(loop.nest, row_dim), tile);
      }
    }
    launch(copy_words<Word, Index>, {word_blocks(loop.count()), kWordThreads}, stream, target, source, device_loop);
  });
}

}  // namespace tandem::cuda
