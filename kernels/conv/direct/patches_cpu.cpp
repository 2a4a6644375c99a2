// Gathers and scatters input patches.
#include "tandem/kernels/conv/direct/patches.h"

#include "tandem/kernels/cast/float_runs.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

/// Walks over output pixels in memory order.
struct Pixel {
  std::int64_t image, p, q;

  Pixel(const ConvGeometry& g, std::int64_t index) : image(index / (g.p * g.q)), p(index / g.q % g.p), q(index % g.q) {}
  void advance(const ConvGeometry& g) {
    if (++q < g.q) return;
    q = 0;
    if (++p < g.p) return;
    p = 0;
    ++image;
  }
};

/// Copies `count` values to floats, in whole vectors where that reads nothing beyond `end`: what then is written too
/// much lies in the gather buffer, where later values overwrite it.
template <typename T>
[[gnu::always_inline]] inline void copy_run(const T* from, std::int64_t count, const T* end, float* to) {
  const std::int64_t whole = (count + simd::kLanes - 1) / simd::kLanes * simd::kLanes;
  if (from + whole > end) {
    cpu::widen(from, count, to);
    return;
  }
  for (std::int64_t i = 0; i < whole; i += simd::kLanes) simd::store(to + i, simd::load(from + i));
}

}  // namespace

template <typename T>
void gather_patches(const ConvGeometry& g, const T* x, std::int64_t group, std::int64_t first, std::int64_t count,
                    float* rows, std::int64_t row_stride) {
  const std::int64_t channels = g.group_c(), run = g.s * channels, size = patch_size(g);
  const bool runs_are_dense = g.dilation_w == 1 && g.groups == 1;
  const T* end = x + g.input_numel();
  Pixel pixel(g, first);
  for (std::int64_t i = 0; i < count; ++i, pixel.advance(g)) {
    float* to = rows + i * row_stride;
    const std::int64_t column0 = pixel.q * g.stride_w - g.pad_w;
    const bool run_inside = runs_are_dense && column0 >= 0 && column0 + g.s <= g.w;
    for (std::int64_t r = 0; r < g.r; ++r, to += run) {
      const std::int64_t row = pixel.p * g.stride_h - g.pad_h + r * g.dilation_h;
      if (row < 0 || row >= g.h) {
        std::fill_n(to, run, 0.0f);
        continue;
      }
      const T* line = x + (pixel.image * g.h + row) * g.w * g.c + group * channels;
      if (run_inside) {
        copy_run(line + column0 * g.c, run, end, to);
        continue;
      }
      for (std::int64_t s = 0; s < g.s; ++s) {
        const std::int64_t column = column0 + s * g.dilation_w;
        if (column >= 0 && column < g.w)
          copy_run(line + column * g.c, channels, end, to + s * channels);
        else
          std::fill_n(to + s * channels, channels, 0.0f);
      }
    }
    std::fill_n(rows + i * row_stride + size, row_stride - size, 0.0f);
  }
}

template void gather_patches(const ConvGeometry&, const float*, std::int64_t, std::int64_t, std::int64_t, float*,
                             std::int64_t);
template void gather_patches(const ConvGeometry&, const Half*, std::int64_t, std::int64_t, std::int64_t, float*,
                             std::int64_t);
template void gather_patches(const ConvGeometry&, const BFloat16*, std::int64_t, std::int64_t, std::int64_t, float*,
                             std::int64_t);

void scatter_patches(const ConvGeometry& g, const float* rows, std::int64_t row_stride, std::int64_t group,
                     std::int64_t first, std::int64_t count, float* grad_image) {
  const std::int64_t channels = g.group_c();
  Pixel pixel(g, first);
  for (std::int64_t i = 0; i < count; ++i, pixel.advance(g)) {
    const float* from = rows + i * row_stride;
    for (std::int64_t r = 0; r < g.r; ++r)
      for (std::int64_t s = 0; s < g.s; ++s, from += channels) {
        const std::int64_t row = pixel.p * g.stride_h - g.pad_h + r * g.dilation_h;
        const std::int64_t column = pixel.q * g.stride_w - g.pad_w + s * g.dilation_w;
        if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
        float* to = grad_image + (row * g.w + column) * g.c + group * channels;
        for (std::int64_t c = 0; c < channels; ++c) to[c] += from[c];
      }
  }
}

}  // namespace tandem::kernels::direct
