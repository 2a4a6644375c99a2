// Gathers and scatters input patches.
#include "kernels/conv/direct/patches.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

/// Calls visit(i, column, input element) for each tap of the pixels' patches; `element` is -1 outside the image.
template <typename Visit>
void for_each_tap(const ConvGeometry& g, std::int64_t group, std::int64_t first, std::int64_t count, Visit&& visit) {
  const std::int64_t channels = g.group_c();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t pixel = first + i, in_image = pixel % (g.p * g.q), image = pixel / (g.p * g.q);
    const std::int64_t row0 = in_image / g.q * g.stride_h - g.pad_h, column0 = in_image % g.q * g.stride_w - g.pad_w;
    std::int64_t to = 0;
    for (std::int64_t r = 0; r < g.r; ++r) {
      const std::int64_t row = row0 + r * g.dilation_h;
      for (std::int64_t s = 0; s < g.s; ++s, to += channels) {
        const std::int64_t column = column0 + s * g.dilation_w;
        const bool inside = row >= 0 && row < g.h && column >= 0 && column < g.w;
        visit(i, to, inside ? ((image * g.h + row) * g.w + column) * g.c + group * channels : -1);
      }
    }
  }
}

}  // namespace

void gather_patches(const ConvGeometry& g, const float* x, std::int64_t group, std::int64_t first, std::int64_t count,
                    float* rows, std::int64_t row_stride) {
  const std::int64_t channels = g.group_c(), size = patch_size(g);
  for_each_tap(g, group, first, count, [&](std::int64_t i, std::int64_t column, std::int64_t element) {
    float* to = rows + i * row_stride + column;
    if (element < 0)
      std::fill_n(to, channels, 0.0f);
    else
      for (std::int64_t c = 0; c < channels; ++c) to[c] = x[element + c];
  });
  for (std::int64_t i = 0; i < count && size < row_stride; ++i)
    std::fill_n(rows + i * row_stride + size, row_stride - size, 0.0f);
}

void scatter_patches(const ConvGeometry& g, const float* rows, std::int64_t row_stride, std::int64_t group,
                     std::int64_t first, std::int64_t count, float* grad_x) {
  const std::int64_t channels = g.group_c();
  for_each_tap(g, group, first, count, [&](std::int64_t i, std::int64_t column, std::int64_t element) {
    if (element < 0) return;
    const float* from = rows + i * row_stride + column;
    for (std::int64_t c = 0; c < channels; ++c) grad_x[element + c] += from[c];
  });
}

}  // namespace tandem::kernels::direct
