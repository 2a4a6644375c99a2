// The numbers of one convolution, as the implementations behind conv.h see them.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

#include <compare>
#include <cstdint>

namespace tandem::kernels {

/// Sizes are in the terms of conv.h. Padding is what lies before the first row and column and may be negative here;
/// what lies after the last follows from p and q.
struct ConvGeometry {
  std::int64_t n, c, h, w;
  std::int64_t k, r, s;
  std::int64_t p, q;
  std::int64_t groups;
  std::int64_t stride_h, stride_w;
  std::int64_t pad_h, pad_w;
  std::int64_t dilation_h, dilation_w;

  std::int64_t group_c() const { return c / groups; }
  std::int64_t group_k() const { return k / groups; }
  std::int64_t input_numel() const { return n * c * h * w; }
  std::int64_t output_numel() const { return n * k * p * q; }
  std::int64_t weight_numel() const { return k * group_c() * r * s; }
  bool has_unit_stride() const { return stride_h == 1 && stride_w == 1; }

  friend auto operator<=>(const ConvGeometry&, const ConvGeometry&) = default;
};

/// What is decided, and measured, for itself. The last three stand for a forward pass and what follows it: ReLU and 2x2
/// maxima; batch norm; or 2x2 maxima and then batch norm.
enum class PassKind : std::uint8_t {
  forward,
  backward_input,
  backward_weight,
  forward_pool,
  forward_moments,
  forward_pool_moments
};

std::string_view name_of(PassKind pass);

ConvGeometry make_geometry(const Shape& x, const Shape& w, const Conv2dOptions& options);

/// With unit strides, grad_x is a convolution of grad_y with the kernel rotated by 180 degrees and C and K swapped.
/// This is its geometry.
ConvGeometry backward_input_as_forward(const ConvGeometry& g);

/// The same convolution without the odd last row and column of y, which 2x2 windows side by side leave out.
ConvGeometry whole_windows(const ConvGeometry& g);

/// Whether y ends where padding that is the same on both sides makes it end, as libraries have it.
bool pads_both_sides_alike(const ConvGeometry& g);

/// What happens to an output element before it is stored. `mask` needs `relu`; its bits are those of what is stored.
struct ConvEpilogue {
  const float* bias = nullptr;
  bool relu = false;
  std::uint8_t* mask = nullptr;
};

/// A gradient of y that counts only where the bit of the forward pass is set; without a mask it counts everywhere.
template <typename T>
struct MaskedGradient {
  const T* data;
  const std::uint8_t* mask = nullptr;

  /// From an element on whose number is a multiple of 8: its bit begins a byte.
  MaskedGradient from(std::int64_t element) const {
    return {data + element, mask != nullptr ? mask + element / 8 : nullptr};
  }
};

}  // namespace tandem::kernels
