// Matrices in device memory as operands and results of a product.
#pragma once

#include "tandem/kernels/gemm/gate.cuh"
#include "tandem/kernels/gemm/product_tile.cuh"

#include <cstdint>

namespace tandem::kernels {

/// True if fours of T may start at `pointer`; a null pointer is never read.
template <typename T>
bool starts_fours(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (4 * sizeof(T)) == 0;
}

/// A matrix of any strides as an operand; element (row, depth) counts where the gate is open.
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t rows;
  std::int64_t row_stride;
  std::int64_t depth_stride;
  Gate<T> gate = {};  // by offset from data

  struct Row {
    std::int64_t offset;
    bool inside;
  };

  __device__ bool along_depth() const { return depth_stride == 1; }
  __device__ Row row(std::int64_t row) const { return {row * row_stride, row < rows}; }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const std::int64_t at = row.offset + depth * depth_stride;
    device::Vector<float, N> values = load_floats<N>(data + at);
    gate.template apply<N>(values, at);
    return values;
  }

  /// True if the elements can be loaded by fours: adjacent, and all fours whole and aligned. Host only.
  bool takes_vectors(std::int64_t depth) const {
    const bool whole = depth_stride == 1 ? depth % 4 == 0 && (row_stride % 4 == 0 || rows <= 1)
                                         : row_stride == 1 && rows % 4 == 0 && (depth_stride % 4 == 0 || depth <= 1);
    return whole && starts_fours(data) && starts_fours(gate.output);
  }
};

/// A matrix with adjacent columns that takes sums: + what it holds, + bias[column], then ReLU, as asked. If the sums
/// come in parts, they go to `parts` first, one matrix per blockIdx.y.
template <typename T>
struct MatrixResult {
  T* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  const T* bias = nullptr;
  bool accumulate = false;
  bool relu = false;
  float* parts = nullptr;

  static constexpr bool kSumsRows = false;

  __device__ bool holds(std::int64_t row, std::int64_t column) const { return row < rows && column < columns; }

  /// What becomes of kCount neighbouring sums.
  template <int kCount>
  __device__ device::Vector<T, kCount> finished(std::int64_t row, std::int64_t column,
                                                device::Vector<float, kCount> sums) const {
    if (accumulate) add(sums, load_floats<kCount>(data + row * row_stride + column));
    if (bias != nullptr) add(sums, load_floats<kCount>(bias + column));
    device::Vector<T, kCount> rounded;
#pragma unroll
    for (int j = 0; j < kCount; ++j) rounded[j] = device::from_float<T>(relu && sums[j] < 0.0f ? 0.0f : sums[j]);
    return rounded;
  }

  /// Takes kCount sums of neighbours, in one access. All threads of the block call it.
  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    if (!holds(row, column)) return;
    if (parts != nullptr) return device::store_vector(parts + (blockIdx.y * rows + row) * columns + column, sums);
    device::store_vector(data + row * row_stride + column, finished(row, column, sums));
  }

  /// True if columns come in whole, aligned fours. Host only.
  bool takes_vectors() const {
    return columns % 4 == 0 && (row_stride % 4 == 0 || rows <= 1) && starts_fours(data) && starts_fours(bias);
  }

 private:
  template <int kCount>
  static __device__ void add(device::Vector<float, kCount>& sums, const device::Vector<float, kCount>& more) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += more[j];
  }
};

/// A matrix, and beside it the sums of the left operand's rows. A part holds the matrix, then those.
template <typename T>
struct MatrixAndRowSums : MatrixResult<T> {
  T* row_sums;  // [rows]

  static constexpr bool kSumsRows = true;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    if (this->parts == nullptr) return MatrixResult<T>::store(row, column, sums);
    if (this->holds(row, column)) device::store_vector(part() + row * this->columns + column, sums);
  }

  __device__ void store_row_sum(std::int64_t row, float sum) const {
    if (row >= this->rows) return;
    if (this->parts != nullptr) {
      part()[this->rows * this->columns + row] = sum;
    } else {
      row_sums[row] = device::from_float<T>(sum);
    }
  }

  /// True if the parts, too, begin at whole fours. Host only.
  bool takes_vectors() const { return MatrixResult<T>::takes_vectors() && this->rows % 4 == 0; }

 private:
  __device__ float* part() const { return this->parts + blockIdx.y * this->rows * (this->columns + 1); }
};

/// What takes the added parts of a result: number `column` of `columns` at a time.
template <typename T>
struct AddedMatrixAndRowSums {
  MatrixAndRowSums<T> result;
  std::int64_t rows, columns;  // 1, and all elements of a part

  template <int kCount>
  __device__ void store(std::int64_t, std::int64_t at, const device::Vector<float, kCount>& sum) const {
    static_assert(kCount == 1);
    const std::int64_t size = result.rows * result.columns;
    if (at < size) {
      result.template store<1>(at / result.columns, at % result.columns, sum);
    } else {
      result.store_row_sum(at - size, sum[0]);
    }
  }
};

template <typename Result>
Result of_added_parts(const Result& result) {
  return result;
}

template <typename T>
AddedMatrixAndRowSums<T> of_added_parts(const MatrixAndRowSums<T>& result) {
  return {result, 1, result.rows * (result.columns + 1)};
}

}  // namespace tandem::kernels
