// batched_gemm on the GPU: the tiles of all products in one launch, where one product does not fill the GPU.
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/found_library.h"
#include "tandem/kernels/gemm/batched_gemm_implementations.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda {
namespace {

/// The batch, which is blockIdx.z, of c, a and b.
using BatchNest = device::Nest<3>;
constexpr int kOfC = 0, kOfA = 1, kOfB = 2;

/// One matrix of a batch as an operand.
template <typename T, int kOperand>
struct BatchedMatrix : Matrix<T> {
  BatchNest batches;

  using Row = typename Matrix<T>::Row;

  __device__ Row row(std::int64_t row) const {
    Row found = Matrix<T>::row(row);
    found.offset += device::offsets_of(batches, blockIdx.z).offset[kOperand];
    return found;
  }
};

/// One matrix of a batch as a result.
template <typename T>
struct BatchedResult : MatrixResult<T> {
  BatchNest batches;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    MatrixResult<T> matrix = *this;
    matrix.data += device::offsets_of(batches, blockIdx.z).offset[kOfC];
    matrix.template store<kCount>(row, column, sums);
  }
};

/// True if all matrices begin at whole fours where the first does.
bool steps_by_fours(const Tensor& matrices) {
  for (int dim = 0; dim + 2 < matrices.rank(); ++dim)
    if (matrices.stride(dim) % 4 != 0) return false;
  return true;
}

/// Without the last two dimensions.
template <typename Dims>
Dims leading(const Dims& dims) {
  return Dims(std::span(dims.begin(), static_cast<std::size_t>(dims.rank() - 2)));
}

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

template <typename T>
void multiply_in_one_launch(const Tensor& a, const Tensor& b, const Out& c) {
  constexpr std::int64_t kMostBatches = 65535;  // of a grid's third dimension
  const std::int64_t rows = c.size(-2), columns = c.size(-1), depth = a.size(-1);
  const ProductPlan plan = plan_batch(matrix_count(c), rows, columns, depth);
  const cudaStream_t stream = tandem::cuda::current_stream(c);
  const device::HostNest<3> nest(leading(c.shape()),
                                 {leading(c.strides()), leading(a.strides()), leading(b.strides())});
  nest.for_each_part(
      [&](const BatchNest& batches, const auto& starts) {
        const BatchedMatrix<T, kOfA> left{{a.data<T>() + starts[kOfA], rows, a.stride(-2), a.stride(-1)}, batches};
        const BatchedMatrix<T, kOfB> right{{b.data<T>() + starts[kOfB], columns, b.stride(-1), b.stride(-2)}, batches};
        const BatchedResult<T> result{
            {.data = c.data<T>() + starts[kOfC], .rows = rows, .columns = columns, .row_stride = c.stride(-2)},
            batches};
        const bool vectors = left.takes_vectors(depth) && right.takes_vectors(depth) && result.takes_vectors() &&
                             steps_by_fours(a) && steps_by_fours(b) && steps_by_fours(c);
        launch_tiles(plan, vectors, left, right, result, depth, stream, batches.count);
      },
      kMostBatches);
}

}  // namespace

void batched_gemm(const Tensor& a, const Tensor& b, const Out& c) {
  const std::int64_t batches = matrix_count(c);
  if (batches == 1 || c.size(-2) * c.size(-1) * a.size(-1) >= kLeastLibraryWork) {
    for (std::int64_t i = 0; i < batches; ++i) gemm(matrix_at(a, i), matrix_at(b, i), {}, Out(matrix_at(c, i)));
    return;
  }
  device::dispatch(c.dtype(), "batched_gemm",
                   [&](auto tag) { multiply_in_one_launch<typename decltype(tag)::type>(a, b, c); });
}

}  // namespace tandem::kernels::cuda
