// Matrices in device memory as operands and results of a product.
#pragma once

#include "kernels/gemm/gate.cuh"
#include "kernels/gemm/product_tile.cuh"

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

/// Four elements of a row, as floats; the first `count` where they are no vector.
template <typename T>
__device__ device::Vector<float, kSide> load_four(const T* from, bool vector, std::int64_t count) {
  if (vector) return load_floats<kSide>(from);
  device::Vector<float, kSide> values = {};
#pragma unroll
  for (int j = 0; j < kSide; ++j)
    if (j < count) values[j] = device::to_float(from[j]);
  return values;
}

/// Rounds and stores them.
template <typename T>
__device__ void store_four(T* to, const device::Vector<float, kSide>& values, bool vector, std::int64_t count) {
  device::Vector<T, kSide> rounded;
#pragma unroll
  for (int j = 0; j < kSide; ++j) rounded[j] = device::from_float<T>(values[j]);
  if (vector) return device::store_vector(to, rounded);
#pragma unroll
  for (int j = 0; j < kSide; ++j)
    if (j < count) to[j] = rounded[j];
}

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
  bool vectors = false;  // columns come in whole, aligned fours
  float* parts = nullptr;

  __device__ void store(std::int64_t row, std::int64_t column, device::Vector<float, kSide> sums) const {
    if (row >= rows || column >= columns) return;
    const std::int64_t count = columns - column;
    if (parts != nullptr)
      return store_four(parts + (blockIdx.y * rows + row) * columns + column, sums, columns % kSide == 0, count);
    T* const to = data + row * row_stride + column;
    if (accumulate) add(sums, load_four<T>(to, vectors, count));
    if (bias != nullptr) add(sums, load_four(bias + column, vectors, count));
#pragma unroll
    for (int j = 0; j < kSide; ++j) sums[j] = relu && sums[j] < 0.0f ? 0.0f : sums[j];
    store_four(to, sums, vectors, count);
  }

  /// Sets `vectors`. Host only.
  MatrixResult with_vectors() const {
    MatrixResult result = *this;
    result.vectors = columns % 4 == 0 && (row_stride % 4 == 0 || rows <= 1) && starts_fours(data) && starts_fours(bias);
    return result;
  }

 private:
  static __device__ void add(device::Vector<float, kSide>& sums, const device::Vector<float, kSide>& more) {
#pragma unroll
    for (int j = 0; j < kSide; ++j) sums[j] += more[j];
  }
};

}  // namespace tandem::kernels
