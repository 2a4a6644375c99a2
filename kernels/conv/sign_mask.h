// The 1-bit ReLU mask as passes of its own, for implementations and sizes that cannot fuse it.
#pragma once

#include "kernels/conv/geometry.h"
#include "kernels/gemm/scratch.h"

#include <cstdint>

namespace tandem::kernels {

/// mask bit i = (y[i] > 0)
void write_sign_mask(const float* y, std::int64_t count, std::uint8_t* mask);

/// out[i] = gradient[i] where its bit is set, else 0
void apply_sign_mask(MaskedGradient gradient, std::int64_t count, float* out);

/// The gradient in a form without a mask where the mask cannot be fused: a masked copy, kept while this object lives.
class DenseGradient {
 public:
  DenseGradient(MaskedGradient given, const ConvGeometry& g, bool keep_mask)
      : gradient(given), copy_(given.mask != nullptr && !keep_mask ? g.output_numel() : 1) {
    if (given.mask == nullptr || keep_mask) return;
    apply_sign_mask(given, g.output_numel(), copy_.data());
    gradient = {copy_.data(), nullptr};
  }
  MaskedGradient gradient;

 private:
  Scratch copy_;
};

/// sums[k] = sum over `rows` rows of `k` values, by fixed chunks of rows.
void sum_rows(const float* rows, std::int64_t count, std::int64_t k, float* sums);

}  // namespace tandem::kernels
