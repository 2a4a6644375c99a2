// Rows of an image with the padding written out: convolutions of few channels read their patches there, in place.
#pragma once

#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/gemm/simd.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::direct {

/// The input rows that output rows [first, first + count) of one image read. Output row first + i has the patch of
/// column q, in order (r, s, c), at row(i, r) + q * pixel_step: the s and c of one r lie next to each other.
class PaddedRows {
 public:
  /// Convolutions of one group whose taps along a row lie next to each other.
  static bool supports(const ConvGeometry& g) { return g.groups == 1 && g.dilation_w == 1; }

  /// Floats of memory for up to `count` output rows.
  static std::int64_t floats(const ConvGeometry& g, std::int64_t count) { return rows_of(g, count) * row_floats(g); }
  static std::int64_t row_floats(const ConvGeometry& g) { return ((g.q - 1) * g.stride_w + g.s) * g.c; }

  template <typename T>
  PaddedRows(const ConvGeometry& g, const T* x, std::int64_t image, std::int64_t first, std::int64_t count,
             float* memory)
      : g_(g), memory_(memory) {
    for (std::int64_t i = 0; i < rows_of(g, count); ++i)
      fill(g, x, image, first * g.stride_h - g.pad_h + i, memory + i * row_floats(g));
  }

  /// Writes one row of an image with its padding; a row outside the image is all padding.
  template <typename T>
  static void fill(const ConvGeometry& g, const T* x, std::int64_t image, std::int64_t row, float* to) {
    const std::int64_t columns = row_floats(g) / g.c;
    if (row < 0 || row >= g.h) {
      std::fill_n(to, columns * g.c, 0.0f);
      return;
    }
    const std::int64_t left = std::clamp<std::int64_t>(g.pad_w, 0, columns);          // zeros before the image
    const std::int64_t end = std::clamp<std::int64_t>(g.w + g.pad_w, left, columns);  // where it ends
    const T* const line = x + (image * g.h + row) * g.w * g.c;
    std::fill_n(to, left * g.c, 0.0f);
    cpu::widen(line + (left - g.pad_w) * g.c, (end - left) * g.c, to + left * g.c);
    std::fill_n(to + end * g.c, (columns - end) * g.c, 0.0f);
  }

  const float* row(std::int64_t i, std::int64_t r) const {
    return memory_ + (i * g_.stride_h + r * g_.dilation_h) * row_floats(g_);
  }
  std::int64_t pixel_step() const { return g_.stride_w * g_.c; }
  std::int64_t tap_row_step() const { return g_.dilation_h * row_floats(g_); }

  /// Input rows that `count` output rows read.
  static std::int64_t rows_of(const ConvGeometry& g, std::int64_t count) {
    return (count - 1) * g.stride_h + (g.r - 1) * g.dilation_h + 1;
  }

 private:
  const ConvGeometry& g_;
  float* memory_;
};

}  // namespace tandem::kernels::direct
