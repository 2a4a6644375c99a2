// The forward pass as a product: patches, weights, and what becomes of the sums.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/dense_operand.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/patch_rows.cuh"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// y = the sums + bias, ReLU, and a mask bit for each positive element; bias and mask may be null.
template <typename T>
struct ForwardResult {
  static constexpr bool kSumsColumns = false;

  T* y;
  int rows, columns;
  const T* bias;
  bool relu;
  std::uint8_t* mask;

  __device__ device::Vector<float, 2> addend(int column) const { return bias_addend(bias, columns, column); }

  __device__ float finished(float sum) const { return relu && sum < 0.0f ? 0.0f : sum; }

  __device__ bool store(int row, int column, const device::Vector<T, kVectorSize<T>>& values) const {
    const bool inside = row < rows && column < columns;
    const int at = row * columns + column;
    if (inside) device::store_vector(y + at, values);
    if (mask == nullptr) return inside;
    const unsigned bits = sign_bits<T>(values);
    if (inside && at % 8 == 0) mask[at / 8] = static_cast<std::uint8_t>(bits);
    return inside;
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    store_tile(*this, accumulators, at, first_row, first_column, shared);
  }
};

/// The result of a pass to y [N, K, P, Q].
template <typename T>
ForwardResult<T> forward_result(const ConvGeometry& g, const Epilogue& epilogue, const Out& y) {
  return {y.data<T>(),           static_cast<int>(g.n * g.p * g.q),
          static_cast<int>(g.k), data_or_null<T>(epilogue.bias),
          epilogue.relu,         data_or_null<std::uint8_t>(epilogue.mask)};
}

/// The operands and the result of one forward pass.
template <typename T>
struct ForwardProduct {
  PatchRows<T> patches;
  DenseOperand<T, true> weights;  // [K, R, S, C]: a column is an output channel, depth taps and input channels
  ForwardResult<T> result;

  ForwardProduct(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y)
      : patches(x.data<T>(), patches_down(g), patches_across(g), g.c, g.n),
        weights{w.data<T>(), static_cast<int>(g.k), static_cast<int>(g.r * g.s * g.c)},
        result(forward_result<T>(g, epilogue, y)) {}
};

}  // namespace tandem::kernels::cuda::implicit_gemm
