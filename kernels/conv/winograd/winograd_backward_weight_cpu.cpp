// Winograd weight gradient: dW = G^T [sum over tiles of (A dY A^T) * (B^T d B)] G.
#include "kernels/conv/implementations.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/conv/tuning/tuner.h"
#include "kernels/conv/winograd/choice.h"
#include "kernels/conv/winograd/tile_transforms.h"
#include "kernels/conv/winograd/weight_transforms.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"

namespace tandem::kernels::winograd {
namespace {

// A tile of dU: kRows outputs (a divisor of kLanes) by up to kVectors blocks of inputs.
constexpr int kRows = kLanes > 4 ? kLanes / 2 : 4;
constexpr int kVectors = kLanes > 4 ? 2 : 4;
constexpr std::int64_t kChunk = 8;            // tiles per transform task and per bias partial sum
constexpr std::int64_t kOutputsPerTask = 64;  // of the final transform

/// dU += W^T V over `tiles` tiles, for one frequency.
template <int kCount>
void multiply_outputs(const float* w, std::int64_t w_block, const float* v, std::int64_t v_block, std::int64_t tiles,
                      std::int64_t k_blocks, float* du, std::int64_t du_block, bool accumulate) {
  for (std::int64_t k = 0; k < k_blocks * kLanes; k += kRows)
    tiling::multiply_tile<kRows, kCount>({.a = w + k / kLanes * w_block + k % kLanes,
                                          .a_row = 1,
                                          .a_k = kLanes,
                                          .a_segment = 0,
                                          .segments = 1,
                                          .segment = tiles,
                                          .b = v,
                                          .b_k = kLanes,
                                          .b_vector = v_block,
                                          .c = du + k * kLanes,
                                          .c_row = kLanes,
                                          .c_vector = du_block,
                                          .accumulate = accumulate});
}

template <int kOutputs, typename T>
void weight_gradient(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias) {
  constexpr std::int64_t kFrequencies = Transforms<kOutputs>::kSize * Transforms<kOutputs>::kSize;
  const Tiles<kOutputs> tiles(g);
  const WeightGradientBuffer layout(g);
  const std::int64_t c_blocks = blocks_of(g.c), k_blocks = blocks_of(g.k), k_filled = k_blocks * kLanes;
  const std::int64_t per_block = tiles_per_block((c_blocks + k_blocks) * kLanes * kFrequencies) / kChunk * kChunk;
  const std::int64_t chunks = per_block / kChunk;

  const Scratch du(layout.frequency * kFrequencies);
  const ScratchOf<T> zeros(std::max(c_blocks, k_blocks) * kLanes);
  std::fill_n(zeros.data(), std::max(c_blocks, k_blocks) * kLanes, T{});
  const Scratch v_data(TileBuffer::floats(c_blocks, per_block, kFrequencies));
  const Scratch w_data(TileBuffer::floats(k_blocks, per_block, kFrequencies));
  const Scratch bias_parts(chunks * k_filled);
  const TileBuffer v(v_data.data(), c_blocks, per_block), wy(w_data.data(), k_blocks, per_block);
  std::vector<double> bias(static_cast<std::size_t>(k_filled), 0.0);

  for (std::int64_t first = 0; first < tiles.count; first += per_block) {
    const std::int64_t count = std::min(per_block, tiles.count - first);
    for_each_task(2 * chunks, [&](std::int64_t task, std::int64_t) {
      const std::int64_t slot = std::min(count, task / 2 * kChunk), stop = std::min(count, slot + kChunk);
      if (task % 2 == 0)
        return transform_input<kOutputs, false>(g, x, nullptr, zeros.data(), first + slot, first + stop, slot, v);
      float* sums = bias_parts.data() + task / 2 * k_filled;
      std::fill_n(sums, k_filled, 0.0f);
      if (grad_y.mask != nullptr)
        transform_gradient<kOutputs, true>(g, grad_y, zeros.data(), first + slot, first + stop, slot, wy, sums);
      else
        transform_gradient<kOutputs, false>(g, grad_y, zeros.data(), first + slot, first + stop, slot, wy, sums);
    });
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      for (std::int64_t k = 0; k < k_filled; ++k)
        bias[static_cast<std::size_t>(k)] += static_cast<double>(bias_parts.data()[chunk * k_filled + k]);
    for_each_task(kFrequencies, [&](std::int64_t f, std::int64_t) {
      for (std::int64_t block = 0; block < c_blocks; block += kVectors) {
        const auto run = c_blocks - block >= kVectors ? multiply_outputs<kVectors> : multiply_outputs<1>;
        const std::int64_t step = c_blocks - block >= kVectors ? kVectors : 1;
        for (std::int64_t b = block; b < std::min(c_blocks, block + kVectors); b += step)
          run(wy.data + f * wy.frequency, wy.block, v.data + f * v.frequency + b * v.block, v.block, count, k_blocks,
              du.data() + f * layout.frequency + b * layout.block, layout.block, first > 0);
      }
    });
  }
  const std::int64_t parts = (g.k + kOutputsPerTask - 1) / kOutputsPerTask;
  for_each_task(c_blocks * parts, [&](std::int64_t task, std::int64_t) {
    const std::int64_t begin = task % parts * kOutputsPerTask;
    transform_weight_gradient<kOutputs>(g, du.data(), task / parts, begin, std::min(g.k, begin + kOutputsPerTask),
                                        grad_w);
  });
  for (std::int64_t k = 0; grad_bias != nullptr && k < g.k; ++k)
    grad_bias[k] = static_cast<float>(bias[static_cast<std::size_t>(k)]);
}

}  // namespace

template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias) {
  const DenseGradient<T> dense(grad_y, g, simd::rows_have_whole_bytes(g.k));
  if (prefers_large_tiles(g))
    weight_gradient<4>(g, x, dense.gradient, grad_w, grad_bias);
  else
    weight_gradient<2>(g, x, dense.gradient, grad_w, grad_bias);
}

template void backward_weight(const ConvGeometry&, const float*, MaskedGradient<float>, float*, float*);
template void backward_weight(const ConvGeometry&, const Half*, MaskedGradient<Half>, float*, float*);
template void backward_weight(const ConvGeometry&, const BFloat16*, MaskedGradient<BFloat16>, float*, float*);

bool supports(const ConvGeometry& g) {
  return g.r == 3 && g.s == 3 && g.has_unit_stride() && g.dilation_h == 1 && g.dilation_w == 1 && g.groups == 1;
}

std::int64_t products(const ConvGeometry& g, TunedPass pass) {
  const ConvGeometry run = pass == TunedPass::backward_input ? backward_input_as_forward(g) : g;
  return run.n * run.c * run.k * products_per_image(run, prefers_large_tiles(run) ? 4 : 2);
}

bool pays(const ConvGeometry& g) { return g.c >= 16 && g.k >= 16 && g.p >= 2 && g.q >= 2; }

}  // namespace tandem::kernels::winograd
