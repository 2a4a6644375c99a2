// Images whose pixels are those of other images, moved: what padding, cropping and mirroring are on CUDA.
#pragma once

#include "tandem/core/out.h"

#include <string_view>

namespace tandem::kernels::cuda {

/// Pixel (h, w) of the result is pixel (h - top, w - left), or (h - top, W - 1 - w) with `flip`. What lies outside is
/// 0, or mirrored at the edge pixel with `reflect`.
struct PixelMap {
  std::int64_t top = 0, left = 0;
  bool flip = false, reflect = false;
};

/// out = x, moved. N,C,H,W of one batch size, number of channels, dtype and CUDA device, any strides; f32, f16 and
/// bf16.
void gather_pixels(std::string_view op, const Tensor& x, const PixelMap& map, const Out& out);

}  // namespace tandem::kernels::cuda
