// The weights' gradient as a product: the gradient of y times patches of x, summed up over output pixels.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/dense_operand.cuh"
#include "tandem/kernels/conv/implicit_gemm/patch_columns.cuh"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"
#include "tandem/kernels/device/fragments.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// Sums as they are to `parts`, one matrix per part, or if that is null rounded to grad_w.
template <typename T>
struct WeightResult {
  static constexpr bool kSumsColumns = false;

  T* grad_w;
  int rows, columns;
  float* parts;

  /// What takes the sums of one part.
  __device__ WeightResult of_part(unsigned part) const {
    return {grad_w, rows, columns, parts + std::int64_t{part} * rows * columns};
  }

  __device__ device::Vector<float, 2> addend(int) const { return {}; }
  __device__ float finished(float sum) const { return sum; }

  __device__ bool store(int row, int column, const device::Vector<T, kVectorSize<T>>& values) const {
    if (row >= rows || column >= columns) return false;
    device::store_vector(grad_w + row * columns + column, values);
    return true;
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    if (parts == nullptr) return store_tile(*this, accumulators, at, first_row, first_column, shared);
#pragma unroll
    for (int i = 0; i < Accumulators<Shape>::kMmaRows * 2; ++i)
#pragma unroll
      for (int j = 0; j < Accumulators<Shape>::kMmaColumns; ++j) {
        const int row = first_row + at.row + i * 8 + device::sum_row(at.lane);
        const int column = first_column + at.column + j * 8 + device::sum_column(at.lane);
        const float* const pair = accumulators.value[i / 2][j] + i % 2 * 2;
        if (row < rows && column < columns)
          device::store_vector(parts + row * columns + column, device::Vector<float, 2>{pair[0], pair[1]});
      }
  }
};

/// The operands and the result; parts may be null.
template <typename T>
struct WeightProduct {
  DenseOperand<T, false> gradient;
  PatchColumns<T> patches;
  WeightResult<T> result;

  WeightProduct(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Out& grad_w, float* parts)
      : gradient{grad_y.data<T>(), static_cast<int>(g.k), static_cast<int>(g.n * g.p * g.q)},
        patches(x.data<T>(), patches_down(g), patches_across(g), g.c, g.n),
        result{grad_w.data<T>(), static_cast<int>(g.k), static_cast<int>(g.r * g.s * g.c), parts} {}
};

}  // namespace tandem::kernels::cuda::implicit_gemm
