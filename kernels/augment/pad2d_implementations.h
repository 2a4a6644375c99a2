// The implementations of pad2d.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/augment/pad2d.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::pad2d) pad2d;
decltype(kernels::pad2d_backward) pad2d_backward;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16, channels_last on the CPU; sums in float.
bool pad2d_supports(const Tensor& x, const Tensor& out);
decltype(kernels::pad2d) pad2d;
decltype(kernels::pad2d_backward) pad2d_backward;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::pad2d) pad2d;
decltype(kernels::pad2d_backward) pad2d_backward;
}  // namespace cuda

namespace detail {
/// The index in [0, size) that position `i` of a reflected axis shows, for -size < i < 2 size - 1.
constexpr std::int64_t reflect(std::int64_t i, std::int64_t size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}
}  // namespace detail

}  // namespace tandem::kernels
