// Weight and bias gradient of any geometry: a product of gradients and patches, summed in a fixed number of parts.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/direct/depthwise.h"
#include "tandem/kernels/conv/direct/direct.h"
#include "tandem/kernels/conv/direct/in_place.h"
#include "tandem/kernels/conv/direct/patches.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"
#include "tandem/kernels/gemm/tile.h"

#include <algorithm>

namespace tandem::kernels::direct {
namespace {

using simd::kLanes;

constexpr std::int64_t kPatchBytes = 256 << 10;
constexpr std::int64_t kPartBytes = 32 << 20;  // all partial sums together
constexpr std::int64_t kMostParts = 32;

/// dW += dY^T patches: rows are output channels, columns patch values.
template <int kVectors>
struct Accumulate {
  template <int kRows>
  struct Tile {
    static void run(const float* gradient, std::int64_t k, std::int64_t pixels, const float* patches,
                    std::int64_t patch_stride, float* sums) {
      tiling::multiply_tile<kRows, kVectors>({.a = gradient,
                                              .a_row = 1,
                                              .a_k = k,
                                              .a_segment = 0,
                                              .segments = 1,
                                              .segment = pixels,
                                              .b = patches,
                                              .b_k = patch_stride,
                                              .b_vector = kLanes,
                                              .c = sums,
                                              .c_row = patch_stride,
                                              .c_vector = kLanes,
                                              .accumulate = true});
    }
  };
};
using TileFunction = void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*);

void accumulate(const float* gradient, std::int64_t k, std::int64_t outputs, std::int64_t pixels, const float* patches,
                std::int64_t patch_stride, float* sums) {
  for (std::int64_t column = 0; column < patch_stride; column += 2 * kLanes)
    tiling::for_each_row_tile(outputs, [&](std::int64_t first, std::int64_t rows) {
      const auto at = static_cast<std::size_t>(rows - 1);
      const TileFunction tile = patch_stride - column > kLanes
                                    ? tiling::kKernelByRows<TileFunction, Accumulate<2>::Tile>[at]
                                    : tiling::kKernelByRows<TileFunction, Accumulate<1>::Tile>[at];
      tile(gradient + first, k, pixels, patches + column, patch_stride, sums + first * patch_stride + column);
    });
}

}  // namespace

template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias) {
  if (is_depthwise(g)) return depthwise_backward_weight(g, x, grad_y, grad_w, grad_bias);
  if (reads_patches_in_place(g)) return in_place_backward_weight(g, x, grad_y, grad_w, grad_bias);
  const std::int64_t size = patch_size(g), stride = (size + kLanes - 1) / kLanes * kLanes, outputs = g.group_k();
  const std::int64_t pixels = g.n * g.p * g.q;
  const std::int64_t chunk = std::clamp<std::int64_t>(kPatchBytes / (stride * 4), 32, 256) / 8 * 8;
  const std::int64_t chunks = (pixels + chunk - 1) / chunk;
  const std::int64_t part_floats = g.k * stride + g.k;  // weights, then bias
  const std::int64_t parts = std::min(chunks, std::clamp<std::int64_t>(kPartBytes / (part_floats * 4), 2, kMostParts));

  const std::int64_t own_floats = chunk * (stride + g.k) + kGatherSlack;
  const Scratch sums(parts * part_floats);
  const std::int64_t workers = workers_for(parts);
  const Scratch buffers(workers * own_floats);
  for_each_task(parts, workers, [&](std::int64_t part, std::int64_t worker) {
    float* patches = buffers.data() + worker * own_floats;
    float* masked = patches + chunk * stride + kGatherSlack;
    float* weight_sums = sums.data() + part * part_floats;
    float* bias_sums = weight_sums + g.k * stride;
    std::fill_n(weight_sums, part_floats, 0.0f);
    for (std::int64_t at = chunks * part / parts; at < chunks * (part + 1) / parts; ++at) {
      const std::int64_t first = at * chunk, count = std::min(chunk, pixels - first);
      const float* const gradient = masked_floats(grad_y.from(first * g.k), count * g.k, masked);  // chunks are of 8s
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t k = 0; k < g.k; ++k) bias_sums[k] += gradient[i * g.k + k];
      for (std::int64_t group = 0; group < g.groups; ++group) {
        gather_patches(g, x, group, first, count, patches, stride);
        accumulate(gradient + group * outputs, g.k, outputs, count, patches, stride,
                   weight_sums + group * outputs * stride);
      }
    }
  });

  parallel_for(g.k, 1 + 4096 / stride, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      for (std::int64_t i = 0; i < size; ++i) {
        float sum = 0.0f;
        for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[part * part_floats + k * stride + i];
        grad_w[k * size + i] = sum;
      }
      float sum = 0.0f;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[part * part_floats + g.k * stride + k];
      if (grad_bias != nullptr) grad_bias[k] = sum;
    }
  });
}

template void backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

}  // namespace tandem::kernels::direct
