// When Winograd convolution runs, and with which tile.
#pragma once

#include "kernels/conv/geometry.h"

namespace tandem::kernels::winograd {

/// Buffers of one thread's block of tiles: beyond the L2 of most cores, but large blocks read the weights less often.
inline constexpr std::int64_t kForwardBlockBytes = std::int64_t{3} << 20;
/// The same for the weight gradient, whose blocks the threads share.
inline constexpr std::int64_t kBackwardBlockBytes = std::int64_t{8} << 20;

/// Products per channel pair and image with output tiles of this size.
constexpr std::int64_t products_per_image(const ConvGeometry& g, std::int64_t outputs) {
  return ((g.p + outputs - 1) / outputs) * ((g.q + outputs - 1) / outputs) * (outputs + 2) * (outputs + 2);
}

/// F(4x4,3x3) rather than F(2x2,3x3): true unless the image is so small that it would fill a fraction of a tile.
constexpr bool prefers_large_tiles(const ConvGeometry& g) {
  return products_per_image(g, 4) <= products_per_image(g, 2);
}

}  // namespace tandem::kernels::winograd
