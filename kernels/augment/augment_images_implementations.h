// The implementations of augment_images.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/augment/augment_images.h"

namespace tandem::kernels {

namespace reference {
/// Any floating dtype and strides of `out`.
decltype(kernels::augment_images) augment_images;
}  // namespace reference

namespace cpu {
bool augment_images_supports(const Tensor& out);
decltype(kernels::augment_images) augment_images;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 `out` of any strides on a CUDA device; `source` there, too. Returns before it is done.
decltype(kernels::augment_images) augment_images;
decltype(kernels::plan_images) plan_images;
decltype(kernels::make_images) make_images;
}  // namespace cuda

namespace detail {
/// The mean grey of an image is a sum of whole units, so that it is the same in whatever order pixels are added up. 1
/// has so many of them that no sum overflows, up to 2^32 pixels.
constexpr float grey_units(std::int64_t pixels) { return pixels <= std::int64_t{1} << 22 ? 0x1p40F : 0x1p30F; }
constexpr long long to_grey_units(float grey, float units) { return static_cast<long long>(grey * units); }
constexpr float mean_of_grey_units(long long sum, float units, std::int64_t pixels) {
  return static_cast<float>(static_cast<double>(sum) / (static_cast<double>(units) * static_cast<double>(pixels)));
}
}  // namespace detail

}  // namespace tandem::kernels
