// The input's gradient as products, one for each phase of the stride: operands, and what becomes of the sums, which may
// pass through the ReLU of the layer below and leave that layer's bias gradient.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/patch_rows.cuh"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"
#include "tandem/kernels/conv/implicit_gemm/transposed_weights.cuh"
#include "tandem/kernels/conv/tile/input_phase.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// The gradient of a phase's pixels, 0 where a bit of `open` is not set. Each row of tiles leaves the sums of its
/// columns in a row of `column_sums`. Both may be null.
template <typename T>
struct InputResult {
  static constexpr bool kSumsColumns = true;

  T* grad_x;
  tile::InputPhase phase;
  int rows, columns;
  const std::uint8_t* open;
  float* column_sums;

  __device__ device::Vector<float, 2> addend(int) const { return {}; }
  __device__ float finished(float sum) const { return sum; }

  __device__ bool store(int row, int column, device::Vector<T, kVectorSize<T>>& values) const {
    if (row >= rows || column >= columns) return false;
    const std::int64_t at = phase.pixel(row) * columns + column;
    if (open != nullptr) {
      const unsigned bits = static_cast<unsigned>(open[at / 8]) >> (at % 8);
#pragma unroll
      for (int k = 0; k < kVectorSize<T>; ++k) values[k] = (bits >> k & 1u) != 0 ? values[k] : T{};
    }
    device::store_vector(grad_x + at, values);
    return true;
  }

  __device__ bool sums_columns() const { return column_sums != nullptr; }
  __device__ void store_column_sum(int tile_row, int column, float sum) const {
    if (column < columns) column_sums[std::int64_t{tile_row} * columns + column] = sum;
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    store_tile(*this, accumulators, at, first_row, first_column, shared);
  }
};

/// The result of a pass with unit strides, which is one phase; `column_sums`, of any number of tiles, may be undefined.
template <typename T>
InputResult<T> input_result(const ConvGeometry& g, const LayerBelow& below, const Out& column_sums, const Out& grad_x) {
  return {grad_x.data<T>(),
          tile::InputPhase(g, 0, 0),
          static_cast<int>(g.n * g.h * g.w),
          static_cast<int>(g.c),
          data_or_null<std::uint8_t>(below.mask),
          data_or_null<float>(column_sums)};
}

/// The gradient in "forward" terms: its pixels are the inputs, and further taps lie further back.
inline PatchAxis gradient_axis(const tile::PhaseAxis& axis) {
  return {axis.inputs, axis.outputs, axis.taps, 1, axis.offset, -axis.dilation};
}

/// The operands and the result of one phase; mask and sums may be null.
template <typename T>
struct InputProduct {
  PatchRows<T> patches;
  TransposedWeights<T> weights;
  InputResult<T> result;

  InputProduct(const ConvGeometry& g, const tile::InputPhase& phase, const Tensor& grad_y, const Tensor& w,
               const Out& grad_x, const std::uint8_t* mask_below, float* column_sums)
      : patches(grad_y.data<T>(), gradient_axis(phase.rows), gradient_axis(phase.columns), g.k, g.n),
        weights(w.data<T>(), phase, g.k),
        result{grad_x.data<T>(),      phase,      static_cast<int>(phase.pixels(g.n)),
               static_cast<int>(g.c), mask_below, column_sums} {}
};

}  // namespace tandem::kernels::cuda::implicit_gemm
