// Rows of input patches ("im2col" for a few pixels at a time): what turns any convolution into a matrix product.
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/gemm/simd.h"

#include <cstdint>

namespace tandem::kernels::direct {

/// True if a patch is a pixel: an image of floats is then the matrix of patches itself.
inline bool is_pointwise(const ConvGeometry& g) {
  return g.r == 1 && g.s == 1 && g.has_unit_stride() && g.pad_h == 0 && g.pad_w == 0 && g.p == g.h && g.q == g.w;
}

/// What gather_patches may write too much: less than a vector.
inline constexpr std::int64_t kGatherSlack = simd::kLanes;

/// Values in a patch of one group.
inline std::int64_t patch_size(const ConvGeometry& g) { return g.r * g.s * g.group_c(); }

/// rows[i] = the patch, as floats, in order (r, s, c), of output pixel first + i (counted over all images) and group
/// `group`, for i < count. Pixels outside the image give zeros, and so do the columns from patch_size to row_stride. Up
/// to kGatherSlack floats beyond the last row are overwritten.
template <typename T>
void gather_patches(const ConvGeometry& g, const T* x, std::int64_t group, std::int64_t first, std::int64_t count,
                    float* rows, std::int64_t row_stride);

/// The reverse, within one image: adds rows to its input gradient of group `group`, pixel by pixel in order.
void scatter_patches(const ConvGeometry& g, const float* rows, std::int64_t row_stride, std::int64_t group,
                     std::int64_t first, std::int64_t count, float* grad_image);

}  // namespace tandem::kernels::direct
