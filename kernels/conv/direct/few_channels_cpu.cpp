// Sums of patch values times gradients: a tile has patch values as rows and output channels as columns.
#include "kernels/conv/direct/few_channels.h"

#include "kernels/conv/direct/padded_rows.h"
#include "kernels/conv/direct/patches.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"
#include "kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

using simd::kLanes;

constexpr std::int64_t kMostChannels = 7;
constexpr std::int64_t kBandPixels = 256;  // gradients that are masked at once
constexpr std::int64_t kMostParts = 32;

template <int kVectors>
struct Accumulate {
  template <int kRows>
  struct Tile {
    static void run(const tiling::TileOperands& operands) { tiling::multiply_tile<kRows, kVectors>(operands); }
  };
};
using TileFunction = void (*)(const tiling::TileOperands&);

/// sums[i][k] += patch value i of each pixel times its gradient of output channel k, over `count` output rows.
void accumulate(const ConvGeometry& g, const PaddedRows& rows, std::int64_t count, const float* gradient, float* sums) {
  const std::int64_t run = g.s * g.c;
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t column = 0; column < g.k; column += 2 * kLanes)
      tiling::for_each_row_tile(run, [&](std::int64_t first, std::int64_t height) {
        const auto at = static_cast<std::size_t>(height - 1);
        const TileFunction tile = g.k - column > kLanes ? tiling::kKernelByRows<TileFunction, Accumulate<2>::Tile>[at]
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

void accumulate_bias(const float* gradient, std::int64_t pixels, std::int64_t k, float* sums) {
  for (std::int64_t channel = 0; channel < k; channel += kLanes) {
    simd::Vec sum = simd::load(sums + channel);
    for (std::int64_t i = 0; i < pixels; ++i) sum += simd::load(gradient + i * k + channel);
    simd::store(sums + channel, sum);
  }
}

}  // namespace

bool has_few_channels(const ConvGeometry& g) {
  return PaddedRows::supports(g) && !is_pointwise(g) && g.c <= kMostChannels && simd::rows_have_whole_bytes(g.k);
}

template <typename T>
void few_channels_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                                  float* grad_bias) {
  const std::int64_t size = patch_size(g), part_floats = (size + 1) * g.k;  // weights, then bias
  const std::int64_t band = std::clamp<std::int64_t>(kBandPixels / g.q, 1, g.p), bands = (g.p + band - 1) / band;
  const std::int64_t chunks = g.n * bands, parts = std::min(chunks, kMostParts);
  const std::int64_t row_floats = PaddedRows::floats(g, band), own_floats = row_floats + band * g.q * g.k;
  const Scratch sums(parts * part_floats);
  const std::int64_t workers = workers_for(parts);
  const Scratch buffers(workers * own_floats);
  for_each_task(parts, workers, [&](std::int64_t part, std::int64_t worker) {
    float* const memory = buffers.data() + worker * own_floats;
    float* const masked = memory + row_floats;
    float* const weight_sums = sums.data() + part * part_floats;
    std::fill_n(weight_sums, part_floats, 0.0f);
    for (std::int64_t chunk = chunks * part / parts; chunk < chunks * (part + 1) / parts; ++chunk) {
      const std::int64_t image = chunk / bands, first = chunk % bands * band, count = std::min(band, g.p - first);
      const std::int64_t element = (image * g.p + first) * g.q * g.k;
      const float* const gradient = masked_floats(grad_y.from(element), count * g.q * g.k, masked);
      accumulate(g, PaddedRows(g, x, image, first, count, memory), count, gradient, weight_sums);
      accumulate_bias(gradient, count * g.q, g.k, weight_sums + size * g.k);
    }
  });

  const auto total = [&](std::int64_t i) {
    float sum = 0.0f;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[part * part_floats + i];
    return sum;
  };
  for (std::int64_t k = 0; k < g.k; ++k) {
    for (std::int64_t i = 0; i < size; ++i) grad_w[k * size + i] = total(i * g.k + k);
    if (grad_bias != nullptr) grad_bias[k] = total(size * g.k + k);
  }
}

template void few_channels_backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void few_channels_backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void few_channels_backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*,
                                           float*);

}  // namespace tandem::kernels::direct
