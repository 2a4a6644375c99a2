// Sums of patch values times gradients: a tile has patch values as rows and output channels as columns.
#include "kernels/conv/direct/in_place.h"

#include "kernels/conv/direct/padded_rows.h"
#include "kernels/conv/direct/panels.h"
#include "kernels/conv/direct/patches.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"
#include "kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

using simd::kLanes;

constexpr std::int64_t kBandPixels = 256;      // gradients that are masked at once
constexpr std::int64_t kLeastPixels = 64;      // of an image: what a tile adds up before it is stored
constexpr std::int64_t kPartBytes = 20 << 20;  // all partial sums together
constexpr std::int64_t kMostParts = 32;
constexpr std::int64_t kTasksPerThread = 3;  // at least, where ranges of outputs allow it

template <int kVectors>
struct Accumulate {
  template <int kRows>
  struct Tile {
    static void run(tiling::TileOperands operands) {
      operands.a_row = 1;
      operands.accumulate = true;
      tiling::multiply_tile<kRows, kVectors>(operands);
    }
  };
};
using TileFunction = void (*)(tiling::TileOperands);

/// sums[i][k] += patch value i of each pixel times its gradient of output channel k, over `count` output rows, for k in
/// [begin, end).
void accumulate(const ConvGeometry& g, const PaddedRows& rows, std::int64_t count, const float* gradient,
                std::int64_t begin, std::int64_t end, float* sums) {
  const std::int64_t run = g.s * g.c;
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t column = begin; column < end; column += 2 * kLanes)
      tiling::for_each_row_tile(run, [&](std::int64_t first, std::int64_t height) {
        const auto at = static_cast<std::size_t>(height - 1);
        const TileFunction tile = end - column > kLanes ? tiling::kKernelByRows<TileFunction, Accumulate<2>::Tile>[at]
                                                        : tiling::kKernelByRows<TileFunction, Accumulate<1>::Tile>[at];
        tile({.a = rows.row(0, r) + first,
              .a_row = 1,
              .a_k = rows.pixel_step(),
              .a_segment = rows.output_row_step(),
              .segments = count,
              .segment = g.q,
              .b = gradient + column,
              .b_k = g.k,
              .b_vector = kLanes,
              .c = sums + (r * run + first) * g.k + column,
              .c_row = g.k,
              .c_vector = kLanes,
              .accumulate = true});
      });
}

void accumulate_bias(const float* gradient, std::int64_t pixels, std::int64_t k, std::int64_t begin, std::int64_t end,
                     float* sums) {
  for (std::int64_t channel = begin; channel < end; channel += kLanes) {
    simd::Vec sum = simd::load(sums + channel);
    for (std::int64_t i = 0; i < pixels; ++i) sum += simd::load(gradient + i * k + channel);
    simd::store(sums + channel, sum);
  }
}

}  // namespace

bool reads_patches_in_place(const ConvGeometry& g) {
  return PaddedRows::supports(g) && g.r * g.s > 1 && simd::rows_have_whole_bytes(g.k) &&
         (g.c < kLanes || g.p * g.q >= kLeastPixels);
}

template <typename T>
void in_place_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                              float* grad_bias) {
  const std::int64_t size = patch_size(g), part_floats = (size + 1) * g.k;  // weights, then bias
  const std::int64_t band = std::clamp<std::int64_t>(kBandPixels / g.q, 1, g.p), bands = (g.p + band - 1) / band;
  const std::int64_t chunks = g.n * bands;
  // The bits depend on the parts, and these on the sizes alone.
  const std::int64_t parts = std::min(
      chunks, std::clamp<std::int64_t>(kPartBytes / (part_floats * std::int64_t{sizeof(float)}), 1, kMostParts));
  const std::int64_t threads = tandem::detail::in_parallel() ? 1 : num_threads(), panels = panels_of(g.k);
  const std::int64_t ranges = threads == 1 ? 1 : std::min(panels, (kTasksPerThread * threads + parts - 1) / parts);
  const std::int64_t row_floats = PaddedRows::floats(g, band), own_floats = row_floats + band * g.q * g.k;
  const Scratch sums(parts * part_floats);
  const std::int64_t workers = workers_for(parts * ranges);
  const Scratch buffers(workers * own_floats);
  for_each_task(parts * ranges, workers, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t part = task / ranges, range = task % ranges;
    const std::int64_t begin = panels * range / ranges * kPanel;
    const std::int64_t end = std::min(g.k, panels * (range + 1) / ranges * kPanel);
    float* const memory = buffers.data() + worker * own_floats;
    float* const masked = memory + row_floats;
    float* const weight_sums = sums.data() + part * part_floats;
    for (std::int64_t i = 0; i <= size; ++i)
      std::fill(weight_sums + i * g.k + begin, weight_sums + i * g.k + end, 0.0f);
    for (std::int64_t chunk = chunks * part / parts; chunk < chunks * (part + 1) / parts; ++chunk) {
      const std::int64_t image = chunk / bands, first = chunk % bands * band, count = std::min(band, g.p - first);
      const std::int64_t element = (image * g.p + first) * g.q * g.k;
      const float* const gradient = masked_floats(grad_y.from(element), count * g.q * g.k, masked);
      accumulate(g, PaddedRows(g, x, image, first, count, memory), count, gradient, begin, end, weight_sums);
      accumulate_bias(gradient, count * g.q, g.k, begin, end, weight_sums + size * g.k);
    }
  });

  const auto total = [&](std::int64_t i) {
    simd::Vec sum{};
    for (std::int64_t part = 0; part < parts; ++part) sum += simd::load(sums.data() + part * part_floats + i);
    return sum;
  };
  for_each_task((size + kLanes - 1) / kLanes, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first = task * kLanes, count = std::min<std::int64_t>(kLanes, size - first);
    for (std::int64_t k = 0; k < g.k; k += kLanes) {
      alignas(64) float block[kLanes][kLanes];
      for (std::int64_t i = 0; i < count; ++i) simd::store(block[i], total((first + i) * g.k + k));
      for (std::int64_t j = 0; j < kLanes; ++j)
        for (std::int64_t i = 0; i < count; ++i) grad_w[(k + j) * size + first + i] = block[i][j];
    }
  });
  for (std::int64_t k = 0; grad_bias != nullptr && k < g.k; k += kLanes)
    simd::store(grad_bias + k, total(size * g.k + k));
}

template void in_place_backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void in_place_backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void in_place_backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

}  // namespace tandem::kernels::direct
