// The forward pass as a product: patches, weights, and what becomes of the sums.
#pragma once

#include "kernels/conv/implementations.h"
#include "kernels/conv/implicit_gemm/patches.cuh"
#include "kernels/conv/implicit_gemm/results.cuh"
#include "kernels/conv/implicit_gemm/weights.cuh"
#include "kernels/gemm/gate.cuh"

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

  __device__ device::Vector<float, 2> addend(int column) const {
    if (bias == nullptr || column >= columns) return {};
    return load_floats<2>(bias + column);
  }

  __device__ float finished(float sum) const { return relu && sum < 0.0f ? 0.0f : sum; }

  __device__ bool store(int row, int column, const device::Vector<T, kPiece>& values) const {
    if (row >= rows || column >= columns) return false;
    const int at = row * columns + column;
    device::store_vector(y + at, values);
    if (mask == nullptr) return true;
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < kPiece; ++k) bits |= (device::to_float(values[k]) > 0.0f ? 1u : 0u) << k;
    mask[at / kPiece] = static_cast<std::uint8_t>(bits);
    return true;
  }

  template <typename Shape>
  __device__ void take(const Sums<Shape>& sums, const WarpPlace<Shape>& at, int first_row, int first_column,
                       T* shared) const {
    store_tile(*this, sums, at, first_row, first_column, shared);
  }
};

inline PatchAxis forward_axis(std::int64_t outputs, std::int64_t inputs, std::int64_t taps, std::int64_t stride,
                              std::int64_t pad, std::int64_t dilation) {
  return {static_cast<int>(outputs), static_cast<int>(inputs), static_cast<int>(taps),
          static_cast<int>(stride),  static_cast<int>(-pad),   static_cast<int>(dilation)};
}

/// The operands and the result of one forward pass.
template <typename T>
struct ForwardProduct {
  PatchRows<T> patches;
  WeightColumns<T> weights;
  ForwardResult<T> result;

  ForwardProduct(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y)
      : patches(x.data<T>(), forward_axis(g.p, g.h, g.r, g.stride_h, g.pad_h, g.dilation_h),
                forward_axis(g.q, g.w, g.s, g.stride_w, g.pad_w, g.dilation_w), g.c, g.n),
        weights{w.data<T>(), static_cast<int>(g.k), static_cast<int>(g.r * g.s * g.c)},
        result{y.data<T>(),     patches.rows,
               weights.columns, data_or_null<T>(epilogue.bias),
               epilogue.relu,   data_or_null<std::uint8_t>(epilogue.mask)} {}
};

}  // namespace tandem::kernels::cuda::implicit_gemm
