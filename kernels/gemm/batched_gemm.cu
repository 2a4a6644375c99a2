// batched_gemm on the GPU: the tiles of all products in one launch, where one product does not fill the GPU.
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/found_library.h"
#include "tandem/kernels/gemm/batched_gemm_implementations.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda {
namespace {

/// A matrix of a batch as an operand: number blockIdx.z, `step` elements behind the one before.
template <typename T>
struct BatchedMatrix : Matrix<T> {
  std::int64_t step;

  using Row = typename Matrix<T>::Row;

  __device__ Row row(std::int64_t row) const {
    Row found = Matrix<T>::row(row);
    found.offset += blockIdx.z * step;
    return found;
  }

  /// True if the elements of every matrix can be loaded by fours. Host only.
  bool takes_vectors(std::int64_t depth) const { return Matrix<T>::takes_vectors(depth) && step % 4 == 0; }
};

/// The same as a result.
template <typename T>
struct BatchedResult : MatrixResult<T> {
  std::int64_t step;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    MatrixResult<T> matrix = *this;
    matrix.data += blockIdx.z * step;
    matrix.template store<kCount>(row, column, sums);
  }

  bool takes_vectors() const { return MatrixResult<T>::takes_vectors() && step % 4 == 0; }
};

/// Depends on the sizes alone. The depth is not cut into parts: the batch makes up for it.
ProductPlan plan_batch(std::int64_t batches, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kBlocksForLarge = 32;
  const auto tiles = [&](std::int64_t tile) {
    return ProductPlan{static_cast<int>(tile), (rows + tile - 1) / tile, (columns + tile - 1) / tile, 1, depth};
  };
  const ProductPlan large = tiles(64);
  const bool fills = batches * large.row_tiles * large.column_tiles >= kBlocksForLarge;
  return rows > 32 && columns > 32 && fills ? large : tiles(32);
}

/// [batch, M, K] [batch, K, N]
template <typename T>
void multiply_in_one_launch(const Tensor& a, const Tensor& b, const Out& c) {
  const std::int64_t rows = c.size(1), columns = c.size(2), depth = a.size(2);
  const BatchedMatrix<T> left{{a.data<T>(), rows, a.stride(1), a.stride(2)}, a.stride(0)};
  const BatchedMatrix<T> right{{b.data<T>(), columns, b.stride(2), b.stride(1)}, b.stride(0)};
  const BatchedResult<T> result{{.data = c.data<T>(), .rows = rows, .columns = columns, .row_stride = c.stride(1)},
                                c.stride(0)};
  const bool vectors = left.takes_vectors(depth) && right.takes_vectors(depth) && result.takes_vectors();
  launch_tiles(plan_batch(c.size(0), rows, columns, depth), vectors, left, right, result, depth,
               tandem::cuda::current_stream(c), static_cast<unsigned>(c.size(0)));
}

/// A launch for each index of all leading dimensions but the largest.
void multiply_tiles(const Tensor& a, const Tensor& b, const Out& c) {
  constexpr std::int64_t kMostMatrices = 65535;  // of a grid's third dimension
  if (c.rank() > 3) {
    int largest = 0;
    for (int dim = 1; dim + 2 < c.rank(); ++dim)
      if (c.size(dim) > c.size(largest)) largest = dim;
    const int other = largest == 0 ? 1 : 0;
    for (std::int64_t i = 0; i < c.size(other); ++i)
      multiply_tiles(a.select(other, i), b.select(other, i), Out(c.tensor().select(other, i)));
    return;
  }
  for (std::int64_t start = 0; start < c.size(0); start += kMostMatrices) {
    const std::int64_t count = std::min(kMostMatrices, c.size(0) - start);
    device::dispatch(c.dtype(), "batched_gemm", [&](auto tag) {
      multiply_in_one_launch<typename decltype(tag)::type>(a.narrow(0, start, count), b.narrow(0, start, count),
                                                           Out(c.tensor().narrow(0, start, count)));
    });
  }
}

}  // namespace

void batched_gemm(const Tensor& a, const Tensor& b, const Out& c) {
  const std::int64_t batches = matrix_count(c);
  if (batches == 1 || c.size(-2) * c.size(-1) * a.size(-1) >= kLeastLibraryWork) {
    for (std::int64_t i = 0; i < batches; ++i) gemm(matrix_at(a, i), matrix_at(b, i), {}, Out(matrix_at(c, i)));
    return;
  }
  multiply_tiles(a, b, c);
}

}  // namespace tandem::kernels::cuda
