// grouped_gemm on the GPU: the tiles of all products in one launch, which has what they are by value.
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/grouped_gemm_implementations.h"
#include "tandem/kernels/gemm/product.cuh"

#include <vector>

namespace tandem::kernels::cuda {
namespace {

/// What becomes of products, as kernels compute it.
struct Factors {
  float product, addend, identity;
};

Factors factors_of(const Combination& combination) {
  return {static_cast<float>(combination.product), static_cast<float>(combination.addend),
          static_cast<float>(combination.identity)};
}

/// A matrix with adjacent columns that takes sums, and what becomes of them.
template <typename T>
struct CombinedResult {
  T* data;
  const T* addend;  // null: there is none
  std::int64_t rows, columns;
  Factors factors;

  static constexpr bool kSumsRows = false;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    if (row >= rows || column >= columns) return;
    const std::int64_t at = row * columns + column;
    device::Vector<float, kCount> added{};
    if (addend != nullptr) added = load_floats<kCount>(addend + at);
    device::Vector<T, kCount> rounded;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float value = factors.product * sums[j] + factors.addend * added[j];
      if (row == column + j) value += factors.identity;
      rounded[j] = device::from_float<T>(value);
    }
    device::store_vector(data + at, rounded);
  }
};

/// A batch of products. Steps lead from one matrix to the next, strides from one row, column or depth to the next.
template <typename T>
struct ProductEntry {
  const T *a, *b, *addend;
  T* c;
  std::int64_t a_step, b_step, a_row, a_depth, b_column, b_depth;
  int rows, columns, depth;
  unsigned first_block, tiles, column_tiles;  // tiles of one matrix
};

constexpr int kMostProducts = 16;

template <typename T>
struct ProductTable {
  ProductEntry<T> entries[kMostProducts];
  int count;
};

/// One block for each tile of a result.
template <int kTile, bool kVectors, typename T>
__global__ void __launch_bounds__(kTileThreads<kTile>) grouped_tiles(ProductTable<T> table, Factors factors) {
  int number = 0;
  while (number + 1 < table.count && table.entries[number + 1].first_block <= blockIdx.x) ++number;
  const ProductEntry<T> entry = table.entries[number];
  const unsigned block = blockIdx.x - entry.first_block, tile = block % entry.tiles;
  const std::int64_t matrix = block / entry.tiles;
  const std::int64_t size = std::int64_t{entry.rows} * entry.columns;
  const Matrix<T> a{entry.a + matrix * entry.a_step, entry.rows, entry.a_row, entry.a_depth};
  const Matrix<T> b{entry.b + matrix * entry.b_step, entry.columns, entry.b_column, entry.b_depth};
  const CombinedResult<T> result{entry.c + matrix * size,
                                 entry.addend == nullptr ? nullptr : entry.addend + matrix * size, entry.rows,
                                 entry.columns, factors};
  sum_tile<kTile, kVectors>(a, b, result, std::int64_t{tile / entry.column_tiles} * kTile,
                            std::int64_t{tile % entry.column_tiles} * kTile, 0, entry.depth);
}

/// c = what becomes of c.
template <typename T>
__global__ void combine_elements(CombinedResult<T> result, std::int64_t matrices) {
  const std::int64_t size = result.rows * result.columns;
  for (std::int64_t i = device::thread_in_grid(); i < matrices * size; i += device::threads_in_grid()) {
    CombinedResult<T> matrix = result;
    const std::int64_t first = i / size * size;
    matrix.data += first;
    if (matrix.addend != nullptr) matrix.addend += first;
    const std::int64_t at = i - first;
    matrix.template store<1>(at / result.columns, at % result.columns, load_floats<1>(matrix.data + at));
  }
}

template <typename T>
ProductEntry<T> entry_of(const GroupedProduct& product) {
  const auto& [a, b, c, addend] = product;
  return {.a = a.data<T>(),
          .b = b.data<T>(),
          .addend = addend.defined() ? addend.data<T>() : nullptr,
          .c = c.data<T>(),
          .a_step = a.stride(0),
          .b_step = b.stride(0),
          .a_row = a.stride(1),
          .a_depth = a.stride(2),
          .b_column = b.stride(2),
          .b_depth = b.stride(1),
          .rows = static_cast<int>(c.size(1)),
          .columns = static_cast<int>(c.size(2)),
          .depth = static_cast<int>(a.size(2)),
          .first_block = 0,
          .tiles = 0,
          .column_tiles = 0};
}

template <typename T>
bool takes_vectors(const ProductEntry<T>& entry) {
  const Matrix<T> a{entry.a, entry.rows, entry.a_row, entry.a_depth},
      b{entry.b, entry.columns, entry.b_column, entry.b_depth};
  return a.takes_vectors(entry.depth) && b.takes_vectors(entry.depth) && entry.a_step % 4 == 0 &&
         entry.b_step % 4 == 0 && entry.columns % 4 == 0 && starts_fours(entry.c) && starts_fours(entry.addend);
}

/// Gives each product its blocks; returns how many there are. Sizes alone decide.
template <typename T>
unsigned place_tiles(ProductTable<T>& table, std::span<const GroupedProduct> products, int tile) {
  const auto tiles_of = [tile](int size) { return static_cast<unsigned>((size + tile - 1) / tile); };
  unsigned blocks = 0;
  for (int i = 0; i < table.count; ++i) {
    ProductEntry<T>& entry = table.entries[i];
    entry.column_tiles = tiles_of(entry.columns);
    entry.tiles = tiles_of(entry.rows) * entry.column_tiles;
    entry.first_block = blocks;
    blocks += entry.tiles * static_cast<unsigned>(products[static_cast<std::size_t>(i)].c.size(0));
  }
  return blocks;
}

template <typename T>
void launch_group(std::span<const GroupedProduct> products, const Factors& factors) {
  constexpr unsigned kBlocksForLarge = 264;  // two for each multiprocessor of a large GPU
  ProductTable<T> table{};
  bool vectors = true;
  for (const GroupedProduct& product : products) {
    ProductEntry<T>& entry = table.entries[table.count++];
    entry = entry_of<T>(product);
    vectors = vectors && takes_vectors(entry);
  }
  const cudaStream_t stream = tandem::cuda::current_stream(products.front().c);
  const auto start = [&](auto kernel, unsigned blocks, unsigned threads) {
    launch(kernel, {blocks, threads}, stream, table, factors);
  };
  if (const unsigned blocks = place_tiles(table, products, 64); blocks >= kBlocksForLarge)
    return start(vectors ? grouped_tiles<64, true, T> : grouped_tiles<64, false, T>, blocks, kTileThreads<64>);
  const unsigned blocks = place_tiles(table, products, 32);
  start(vectors ? grouped_tiles<32, true, T> : grouped_tiles<32, false, T>, blocks, kTileThreads<32>);
}

}  // namespace

void combine(const GroupedProduct& product, const Combination& combination) {
  const Out& c = product.c;
  const Tensor& addend = product.addend;
  device::dispatch(c.dtype(), "grouped_gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const CombinedResult<T> result{c.data<T>(), addend.defined() ? addend.data<T>() : nullptr, c.size(1), c.size(2),
                                   factors_of(combination)};
    launch(combine_elements<T>, {device::blocks_for(c.numel(), device::kThreadsPerBlock), device::kThreadsPerBlock},
           tandem::cuda::current_stream(c), result, c.size(0));
  });
}

void grouped_gemm(std::span<const GroupedProduct> products, const Combination& combination) {
  std::vector<GroupedProduct> own;
  for (const GroupedProduct& product : products) {
    const auto& [a, b, c, addend] = product;
    if (!goes_to_library(c.dtype(), c.size(1), c.size(2), a.size(2))) {
      own.push_back(product);
      continue;
    }
    for (std::int64_t i = 0; i < c.size(0); ++i) gemm(matrix_at(a, i), matrix_at(b, i), {}, Out(matrix_at(c, i)));
    if (combination.product != 1.0 || combination.identity != 0.0 || (addend.defined() && combination.addend != 0.0))
      combine(product, combination);
  }
  for (std::size_t first = 0; first < own.size(); first += kMostProducts) {
    const auto some = std::span(own).subspan(first, std::min<std::size_t>(kMostProducts, own.size() - first));
    device::dispatch(some.front().c.dtype(), "grouped_gemm",
                     [&](auto tag) { launch_group<typename decltype(tag)::type>(some, factors_of(combination)); });
  }
}

}  // namespace tandem::kernels::cuda
