// Input gradient of any geometry: a forward convolution by the flipped kernel, or with strides a product scattered into
// the image.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/direct/depthwise.h"
#include "tandem/kernels/conv/direct/direct.h"
#include "tandem/kernels/conv/direct/forward.h"
#include "tandem/kernels/conv/direct/panels.h"
#include "tandem/kernels/conv/direct/patches.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"

namespace tandem::kernels::direct {
namespace {

constexpr std::int64_t kPatchBytes = 256 << 10;

/// One task per image, so that every input pixel collects its contributions in one order.
template <typename T>
void scatter_gradient(const ConvGeometry& g, const T* grad_y, const float* w, T* grad_x) {
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
  // A thread's rows of patches; for halves also the band's gradient, and the image that it adds up.
  const std::int64_t image_pixels = g.p * g.q, image_floats = g.h * g.w * g.c;
  const std::int64_t own_floats = band * size + (cpu::is_float<T> ? 0 : band * g.k + image_floats);
  const std::int64_t workers = workers_for(g.n);
  const Scratch buffers(workers * own_floats);
  for_each_task(g.n, workers, [&](std::int64_t image, std::int64_t worker) {
    float* const rows = buffers.data() + worker * own_floats;
    float* const band_gradient = rows + band * size;
    float* sums = band_gradient + band * g.k;
    if constexpr (cpu::is_float<T>) sums = grad_x + image * image_floats;
    std::fill_n(sums, image_floats, 0.0f);
    for (std::int64_t start = 0; start < image_pixels; start += band) {
      const std::int64_t first = image * image_pixels + start, count = std::min(band, image_pixels - start);
      const float* gradient = band_gradient;
      if constexpr (cpu::is_float<T>)
        gradient = grad_y + first * g.k;
      else
        cpu::widen(grad_y + first * g.k, count * g.k, band_gradient);
      for (std::int64_t group = 0; group < g.groups; ++group) {
        multiply_rows(dense_rows(gradient + group * outputs, g.k, outputs), count, packed.data() + group * group_floats,
                      size, rows, size);
        scatter_patches(g, rows, size, group, start, count, sums);
      }
    }
    if constexpr (!cpu::is_float<T>) cpu::round_floats(sums, image_floats, grad_x + image * image_floats);
  });
}

}  // namespace

template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x) {
  if (is_depthwise(g)) return depthwise_backward_input(g, grad_y, w, grad_x);
  const DenseGradient<T> dense(grad_y, g, false);
  if (g.has_unit_stride())
    convolve(backward_input_as_forward(g), dense.gradient.data, w, true, {}, grad_x);
  else
    scatter_gradient(g, dense.gradient.data, w, grad_x);
}

template void backward_input(const ConvGeometry&, MaskedGradient<float>, const float*, float*);
template void backward_input(const ConvGeometry&, MaskedGradient<Half>, const float*, Half*);
template void backward_input(const ConvGeometry&, MaskedGradient<BFloat16>, const float*, BFloat16*);

}  // namespace tandem::kernels::direct
