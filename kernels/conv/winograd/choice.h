// When Winograd convolution runs, and with which tile.
#pragma once

#include "tandem/kernels/conv/geometry.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::winograd {

/// Transformed data of one thread's block of tiles. It should stay in L2; where many channels make tiles so large that
/// few would fit, at least kLeastTiles are taken, because every block reads all weights.
inline constexpr std::int64_t kBlockBytes = std::int64_t{700} << 10;
inline constexpr std::int64_t kLeastTiles = 56;
inline constexpr std::int64_t kMostTiles = 256;

/// How many tiles are transformed before they are multiplied.
inline std::int64_t tiles_per_block(std::int64_t floats_per_tile) {
  return std::clamp<std::int64_t>(kBlockBytes / (floats_per_tile * std::int64_t{sizeof(float)}), kLeastTiles,
                                  kMostTiles);
}

/// Frequencies of all tiles side by side, in one dimension of so many pixels, where a tile that the edge cuts leaves
/// out its last.
constexpr std::int64_t frequencies_along(std::int64_t pixels, std::int64_t outputs) {
  return pixels / outputs * (outputs + 2) + (pixels % outputs > 0 ? outputs + 1 : 0);
}

/// Products per channel pair and image with output tiles of this size.
struct ProductsPerImage {
  std::int64_t all, needed;  // all: with those that only outputs beyond the edge need

  constexpr ProductsPerImage(const ConvGeometry& g, std::int64_t outputs)
      : all((g.p + outputs - 1) / outputs * (outputs + 2) * ((g.q + outputs - 1) / outputs) * (outputs + 2)),
        needed(frequencies_along(g.p, outputs) * frequencies_along(g.q, outputs)) {}

  /// Whether the others are left out. That goes through images in another order, which costs a hundredth or two in
  /// large ones.
  constexpr bool leaves_out() const { return 16 * needed <= 15 * all; }
  constexpr std::int64_t done() const { return leaves_out() ? needed : all; }
};

/// F(4x4,3x3) rather than F(2x2,3x3): true unless the image is so small that it would fill a fraction of a tile. In one
/// or two rows or columns of outputs the larger tile may save a product or two, and costs more: it has more than twice
/// as many frequencies of the weights.
constexpr bool prefers_large_tiles(const ConvGeometry& g) {
  return g.p > 2 && g.q > 2 && ProductsPerImage(g, 4).done() <= ProductsPerImage(g, 2).done();
}

/// 3x3 kernels with unit stride and dilation, no groups.
inline bool supports(const ConvGeometry& g) {
  return g.r == 3 && g.s == 3 && g.has_unit_stride() && g.dilation_h == 1 && g.dilation_w == 1 && g.groups == 1;
}

/// From 16 channels on, and for more than a line of outputs.
inline bool pays(const ConvGeometry& g) { return g.c >= 16 && g.k >= 16 && g.p >= 2 && g.q >= 2; }

/// Products of transformed values in one pass.
inline std::int64_t products(const ConvGeometry& g, PassKind pass) {
  const ConvGeometry run = pass == PassKind::backward_input ? backward_input_as_forward(g) : g;
  return run.n * run.c * run.k * ProductsPerImage(run, prefers_large_tiles(run) ? 4 : 2).done();
}

}  // namespace tandem::kernels::winograd
