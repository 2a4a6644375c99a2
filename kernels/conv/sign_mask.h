// The 1-bit ReLU mask as passes of its own, for implementations and sizes that cannot fuse it.
#pragma once

#include "tandem/core/half.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/gemm/scratch.h"

#include <cstdint>

namespace tandem::kernels {

// All for T of float, Half and BFloat16.

/// mask bit i = (y[i] > 0)
template <typename T>
void write_sign_mask(const T* y, std::int64_t count, std::uint8_t* mask);

/// out[i] = gradient[i] where its bit is set, or there is no mask, else 0. Out is T or float.
template <typename T, typename Out>
void apply_sign_mask(MaskedGradient<T> gradient, std::int64_t count, Out* out);

/// The gradient as floats: where it lies if that is what it holds, else in `memory`, `count` floats.
template <typename T>
const float* masked_floats(MaskedGradient<T> gradient, std::int64_t count, float* memory) {
  if constexpr (cpu::is_float<T>)
    if (gradient.mask == nullptr) return gradient.data;
  apply_sign_mask(gradient, count, memory);
  return memory;
}

/// The gradient in a form without a mask where the mask cannot be fused: a masked copy, kept while this object lives.
template <typename T>
class DenseGradient {
 public:
  DenseGradient(MaskedGradient<T> given, const ConvGeometry& g, bool keep_mask)
      : gradient(given), copy_(given.mask != nullptr && !keep_mask ? g.output_numel() : 1) {
    if (given.mask == nullptr || keep_mask) return;
    apply_sign_mask(given, g.output_numel(), copy_.data());
    gradient = {copy_.data(), nullptr};
  }
  MaskedGradient<T> gradient;

 private:
  ScratchOf<T> copy_;
};

/// sums[k] = sum over `count` rows of `k` values, by fixed chunks of rows.
template <typename T>
void sum_rows(const T* rows, std::int64_t count, std::int64_t k, float* sums);

}  // namespace tandem::kernels
