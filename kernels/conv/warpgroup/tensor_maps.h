// Tensor maps of images and weights, by which tiles of them are copied. For .cu files.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/warpgroup/plan.h"

#include <cuda.h>

#include <array>

namespace tandem::kernels::cuda::warpgroup {

/// Of a tensor of halves whose memory is dense in these sizes, outermost first, at a multiple of 16 bytes: boxes of
/// these sizes, whose innermost is 64 halves, swizzled lines of 128 bytes. Makes the tensor's device the one that this
/// thread's CUDA calls are for. Throws Error where the driver refuses.
CUtensorMap map_of(const Tensor& tensor, const std::array<std::int64_t, 4>& sizes, const std::array<int, 4>& box);

/// Of images [N, H, W, C] by boxes of pixels.
inline CUtensorMap map_of_images(const Tensor& tensor, std::int64_t images, std::int64_t lines, std::int64_t columns,
                                 std::int64_t channels, const PixelBox& box) {
  return map_of(tensor, {images, lines, columns, channels},
                {box.images(), box.lines(), box.columns(), device::kLineHalves});
}

/// Of weights [K, R, S, C]: one tap of `outputs` output channels.
inline CUtensorMap map_of_weights(const Tensor& w, const ConvGeometry& g, int outputs) {
  return map_of(w, {g.k, g.r, g.s, g.c}, {outputs, 1, 1, device::kLineHalves});
}

}  // namespace tandem::kernels::cuda::warpgroup
