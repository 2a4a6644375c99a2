// Forward convolution of any geometry as a product of patches and packed weights.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/direct/depthwise.h"
#include "tandem/kernels/conv/direct/direct.h"
#include "tandem/kernels/conv/direct/forward.h"
#include "tandem/kernels/conv/direct/padded_rows.h"
#include "tandem/kernels/conv/direct/panels.h"
#include "tandem/kernels/conv/direct/patches.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"

namespace tandem::kernels::direct {
namespace {

constexpr std::int64_t kBandPixels = 256;        // outputs of one task that reads its patches in place
constexpr std::int64_t kPatchBytes = 128 << 10;  // patches of one task: they share L2 with a panel of weights

/// One panel of weights as [tap][input channel][kPanel], zeros for outputs that are not there.
void pack_panel(const ConvGeometry& g, const float* w, bool flipped, std::int64_t group, std::int64_t panel,
                float* to) {
  const std::int64_t taps = g.r * g.s, inputs = g.group_c(), outputs = g.group_k();
  const std::int64_t first = panel * kPanel, width = std::min<std::int64_t>(kPanel, outputs - first);
  std::fill_n(to, taps * inputs * kPanel, 0.0f);
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t o = 0; o < width; ++o)
        to[(tap * inputs + i) * kPanel + o] =
            flipped ? w[((group * inputs + i) * taps + taps - 1 - tap) * outputs + first + o]
                    : w[((group * outputs + first + o) * taps + tap) * inputs + i];
}

/// Bias, ReLU and mask over `rows` finished rows of sums, which become y from element `first` on; they may lie there.
template <typename T>
void finish_rows(const ConvEpilogue& epilogue, const float* sums, std::int64_t rows, std::int64_t k, std::int64_t first,
                 T* y) {
  if (cpu::is_float<T> && epilogue.bias == nullptr && !epilogue.relu) return;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t channel = 0; channel < k; channel += simd::kLanes) {
      const std::int64_t left = std::min<std::int64_t>(simd::kLanes, k - channel);
      const std::int64_t element = first + row * k + channel;
      simd::Vec value = simd::load_partial(sums + row * k + channel, left);
      if (epilogue.bias != nullptr) value += simd::load_partial(epilogue.bias + channel, left);
      if (epilogue.mask != nullptr) simd::store_bits(epilogue.mask, element, simd::stored_positive_bits<T>(value));
      simd::store_partial(y + element, epilogue.relu ? simd::relu(value) : value, left);
    }
}

/// True where patches are better read in place than gathered: rows fill tiles, and the weights, which each row reads
/// anew, stay in L2.
bool rows_pay(const ConvGeometry& g) {
  constexpr std::int64_t kMostWeights = (256 << 10) / sizeof(float);
  return PaddedRows::supports(g) && !is_pointwise(g) && g.q >= tiling::kTileRows && g.weight_numel() <= kMostWeights;
}

/// Convolves row by row, from rows with padding; `packed` are the weights of the one group.
template <typename T>
void convolve_rows(const ConvGeometry& g, const T* x, const float* packed, const ConvEpilogue& epilogue, T* y) {
  const std::int64_t band = std::clamp<std::int64_t>(kBandPixels / g.q, 1, g.p), bands = (g.p + band - 1) / band;
  // A thread's rows of the image, and one of sums where y does not hold floats.
  const std::int64_t row_floats = PaddedRows::floats(g, band);
  const std::int64_t own_floats = row_floats + (cpu::is_float<T> ? 0 : g.q * g.k);
  const std::int64_t workers = workers_for(g.n * bands);
  const Scratch memory(workers * own_floats);
  for_each_task(g.n * bands, workers, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t image = task / bands, first = task % bands * band, count = std::min(band, g.p - first);
    float* const own = memory.data() + worker * own_floats;
    const PaddedRows rows(g, x, image, first, count, own);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t element = (image * g.p + first + i) * g.q * g.k;
      float* sums = own + row_floats;
      if constexpr (cpu::is_float<T>) sums = y + element;
      multiply_rows({rows.row(i, 0), rows.pixel_step(), g.r, g.s * g.c, rows.tap_row_step()}, g.q, packed, g.k, sums,
                    g.k);
      finish_rows(epilogue, sums, g.q, g.k, element, y);
    }
  });
}

}  // namespace

template <typename T>
void convolve(const ConvGeometry& g, const T* x, const float* w, bool flipped, const ConvEpilogue& epilogue, T* y) {
  ConvEpilogue fused = epilogue;
  if (!simd::rows_have_whole_bytes(g.k)) fused.mask = nullptr;
  const std::int64_t size = patch_size(g), outputs = g.group_k(), panels = panels_of(outputs);
  const std::int64_t group_floats = panels * kPanel * size;
  const std::int64_t pixels = g.n * g.p * g.q;
  const std::int64_t band =
      std::clamp<std::int64_t>(kPatchBytes / (size * 4), 2 * tiling::kTileRows, 8 * tiling::kTileRows);
  const std::int64_t bands = (pixels + band - 1) / band;
  const bool in_place = cpu::is_float<T>, pointwise = in_place && is_pointwise(g);

  const Scratch packed(g.groups * group_floats);
  for_each_task(g.groups * panels, [&](std::int64_t task, std::int64_t) {
    pack_panel(g, w, flipped, task / panels, task % panels,
               packed.data() + task / panels * group_floats + task % panels * size * kPanel);
  });

  if (rows_pay(g)) {
    convolve_rows(g, x, packed.data(), fused, y);
    if (epilogue.mask != fused.mask) write_sign_mask(y, g.output_numel(), epilogue.mask);
    return;
  }

  // A thread's patches, and its sums where y does not hold floats.
  const std::int64_t patch_floats = pointwise ? 0 : band * size + kGatherSlack;
  const std::int64_t own_floats = patch_floats + (in_place ? 0 : band * g.k);
  const std::int64_t workers = workers_for(bands);
  const Scratch buffers(workers * own_floats);
  for_each_task(bands, workers, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t first = task * band, count = std::min(band, pixels - first);
    float* const patches = buffers.data() + worker * own_floats;
    float* sums = patches + patch_floats;
    if constexpr (cpu::is_float<T>) sums = y + first * g.k;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const float* rows = patches;
      if constexpr (cpu::is_float<T>)
        if (pointwise) rows = x + first * g.c + group * size;
      if (!pointwise) gather_patches(g, x, group, first, count, patches, size);
      multiply_rows(dense_rows(rows, pointwise ? g.c : size, size), count, packed.data() + group * group_floats,
                    outputs, sums + group * outputs, g.k);
    }
    finish_rows(fused, sums, count, g.k, first * g.k, y);
  });
  if (epilogue.mask != fused.mask) write_sign_mask(y, g.output_numel(), epilogue.mask);
}

template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y) {
  if (is_depthwise(g)) return depthwise_forward(g, x, w, epilogue, y);
  convolve(g, x, w, false, epilogue, y);
}

template void convolve(const ConvGeometry&, const float*, const float*, bool, const ConvEpilogue&, float*);
template void convolve(const ConvGeometry&, const Half*, const float*, bool, const ConvEpilogue&, Half*);
template void convolve(const ConvGeometry&, const BFloat16*, const float*, bool, const ConvEpilogue&, BFloat16*);
template void forward(const ConvGeometry&, const float*, const float*, const ConvEpilogue&, float*);
template void forward(const ConvGeometry&, const Half*, const float*, const ConvEpilogue&, Half*);
template void forward(const ConvGeometry&, const BFloat16*, const float*, const ConvEpilogue&, BFloat16*);

}  // namespace tandem::kernels::direct
