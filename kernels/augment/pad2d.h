// Padding of images.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

enum class PadMode : std::uint8_t {
  zero,
  reflect,  // mirrored at the edge element, which is not repeated: c b | a b c | b a
};

/// Rows and columns added on each side, >= 0.
struct Pad2dOptions {
  std::int64_t left = 0, right = 0, top = 0, bottom = 0;
  PadMode mode = PadMode::zero;
};

/// Shape of the padded images; throws Error unless `x` is N,C,H,W and, for PadMode::reflect, padding < size.
Shape pad2d_output_shape(const Shape& x, const Pad2dOptions& options);

/// out = x with padding around it. N,C,H,W, any strides, one floating dtype and device. Throws Error where that does
/// not hold.
void pad2d(const Tensor& x, const Pad2dOptions& options, const Tensor& out);

/// grad_x = sum of the elements of `grad_out` that were copied from each element.
void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Tensor& grad_x);

namespace reference {
void pad2d(const Tensor& x, const Pad2dOptions& options, const Tensor& out);
void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Tensor& grad_x);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16, channels_last on the CPU; sums in float.
bool pad2d_supports(const Tensor& x, const Tensor& out);
void pad2d(const Tensor& x, const Pad2dOptions& options, const Tensor& out);
void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Tensor& grad_x);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void pad2d(const Tensor& x, const Pad2dOptions& options, const Tensor& out);
void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Tensor& grad_x);
}  // namespace cuda

namespace detail {
/// The index in [0, size) that position `i` of a reflected axis shows, for -size < i < 2 size - 1.
constexpr std::int64_t reflect(std::int64_t i, std::int64_t size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}
}  // namespace detail

}  // namespace tandem::kernels
