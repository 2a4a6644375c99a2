// Input gradient of any geometry: a turned forward convolution, or with strides a product scattered into the image.
#include "kernels/conv/direct/depthwise.h"
#include "kernels/conv/direct/forward.h"
#include "kernels/conv/direct/panels.h"
#include "kernels/conv/direct/patches.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"

namespace tandem::kernels::direct {
namespace {

constexpr std::int64_t kPatchBytes = 256 << 10;

/// One task per image, so that every input pixel collects its contributions in one order.
void scatter_gradient(const ConvGeometry& g, const float* grad_y, const float* w, float* grad_x) {
  const std::int64_t size = patch_size(g), outputs = g.group_k(), panels = panels_of(size);
  const std::int64_t group_floats = panels * kPanel * outputs;
  const Scratch packed(g.groups * group_floats);
  for_each_task(g.groups * panels, [&](std::int64_t task, std::int64_t) {
    const std::int64_t group = task / panels, column = task % panels * kPanel;
    const std::int64_t width = std::min<std::int64_t>(kPanel, size - column);
    float* to = packed.data() + group * group_floats + column * outputs;
    std::fill_n(to, outputs * kPanel, 0.0f);
    for (std::int64_t k = 0; k < outputs; ++k)
      std::copy_n(w + (group * outputs + k) * size + column, width, to + k * kPanel);
  });

  const std::int64_t band =
      std::clamp<std::int64_t>(kPatchBytes / (size * 4), 2 * tiling::kTileRows, 8 * tiling::kTileRows);
  const Scratch patches(std::min<std::int64_t>(num_threads(), g.n) * band * size);
  const std::int64_t image_pixels = g.p * g.q, image_floats = g.h * g.w * g.c;
  for_each_task(g.n, [&](std::int64_t image, std::int64_t worker) {
    std::fill_n(grad_x + image * image_floats, image_floats, 0.0f);
    float* rows = patches.data() + worker * band * size;
    for (std::int64_t start = 0; start < image_pixels; start += band)
      for (std::int64_t group = 0; group < g.groups; ++group) {
        const std::int64_t first = image * image_pixels + start, count = std::min(band, image_pixels - start);
        multiply_rows(dense_rows(grad_y + first * g.k + group * outputs, g.k, outputs), count,
                      packed.data() + group * group_floats, size, rows, size);
        scatter_patches(g, rows, size, group, first, count, grad_x);
      }
  });
}

}  // namespace

void backward_input(const ConvGeometry& g, MaskedGradient grad_y, const float* w, float* grad_x) {
  if (is_depthwise(g)) return depthwise_backward_input(g, grad_y, w, grad_x);
  const DenseGradient dense(grad_y, g, false);
  if (g.has_unit_stride())
    convolve(backward_input_as_forward(g), dense.gradient.data, w, true, {}, grad_x);
  else
    scatter_gradient(g, dense.gradient.data, w, grad_x);
}

}  // namespace tandem::kernels::direct
