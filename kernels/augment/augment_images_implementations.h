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
}  // namespace cuda

}  // namespace tandem::kernels
