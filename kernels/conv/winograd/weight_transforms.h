// Moves 3x3 kernels into the Winograd domain, and their gradients back.
#pragma once

#include "tandem/kernels/conv/winograd/blocks.h"
#include "tandem/kernels/gemm/tile.h"

namespace tandem::kernels::winograd {

using tiling::kPanel;

/// Transformed weights U = G g G^T, as [frequency][panel of outputs][input channel][kPanel]: B panels for tile.h. Input
/// channels are filled up with zeros to whole vectors, outputs to whole panels.
struct WeightBuffer {
  std::int64_t panels, depth;  // depth: input channels, filled up
  std::int64_t frequency;

  explicit WeightBuffer(const ConvGeometry& g)
      : panels((g.k + kPanel - 1) / kPanel), depth(blocks_of(g.c) * kLanes), frequency(panels * depth * kPanel) {}
};

/// Transforms one panel for the convolution `g`. With kFlipped the weights are those of the convolution whose input
/// gradient `g` is (backward_input_as_forward): rotated by 180 degrees, inputs and outputs swapped.
template <int kOutputs, bool kFlipped>
void transform_weight(const ConvGeometry& g, const float* w, std::int64_t panel, float* u) {
  using Maps = Transforms<kOutputs>;
  constexpr int kSize = Maps::kSize, kTaps = 9;
  const WeightBuffer layout(g);
  const std::int64_t first = panel * kPanel, outputs = std::min<std::int64_t>(kPanel, g.k - first);
  // Our weights have the input channel innermost, a panel the output: a few channels at a time are transposed here.
  alignas(64) float taps[kLanes][kTaps][kPanel] = {};
  for (std::int64_t c0 = 0; c0 < layout.depth; c0 += kLanes) {
    const std::int64_t inputs = std::min<std::int64_t>(kLanes, g.c - c0);
    if (inputs < kLanes) std::fill_n(&taps[0][0][0], kLanes * kTaps * kPanel, 0.0f);
    for (int tap = 0; tap < kTaps; ++tap) {
      if constexpr (kFlipped) {
        for (std::int64_t c = 0; c < inputs; ++c)
          std::copy_n(w + ((c0 + c) * kTaps + kTaps - 1 - tap) * g.k + first, outputs, taps[c][tap]);
      } else {
        for (std::int64_t i = 0; i < outputs; ++i) {
          const float* from = w + ((first + i) * kTaps + tap) * g.c + c0;
          for (std::int64_t c = 0; c < inputs; ++c) taps[c][tap][i] = from[c];
        }
      }
    }
    for (std::int64_t c = 0; c < kLanes; ++c)
      for (int v = 0; v < tiling::kPanelVectors; ++v) {
        Vec kernel[3][3], mapped[kSize][kSize];
        for (int tap = 0; tap < kTaps; ++tap) kernel[tap / 3][tap % 3] = simd::load(taps[c][tap] + v * kLanes);
        transform<typename Maps::Weight>(kernel, mapped);
        scatter(mapped, u + (panel * layout.depth + c0 + c) * kPanel + v * kLanes, layout.frequency);
      }
  }
}

/// Gradients of the transformed weights, as [frequency][block of input channels][output][lane].
struct WeightGradientBuffer {
  std::int64_t block, frequency;

  explicit WeightGradientBuffer(const ConvGeometry& g)
      : block(blocks_of(g.k) * kLanes * kLanes), frequency(blocks_of(g.c) * block + kLanes) {}
};

/// dg = G^T dU G for one block of input channels and outputs [begin, end). dU is the sum of `parts` such buffers, which
/// lie `part_floats` apart.
template <int kOutputs>
void transform_weight_gradient(const ConvGeometry& g, const float* du, std::int64_t parts, std::int64_t part_floats,
                               std::int64_t block, std::int64_t begin, std::int64_t end, float* grad_w) {
  using Maps = Transforms<kOutputs>;
  const WeightGradientBuffer layout(g);
  const std::int64_t channel = block * kLanes, left = std::min<std::int64_t>(kLanes, g.c - channel);
  for (std::int64_t k = begin; k < end; ++k) {
    Vec values[Maps::kSize][Maps::kSize], kernel[3][3];
    const float* const from = du + block * layout.block + k * kLanes;
    gather(from, layout.frequency, values);
    for (std::int64_t part = 1; part < parts; ++part) {
      Vec more[Maps::kSize][Maps::kSize];
      gather(from + part * part_floats, layout.frequency, more);
      for (int i = 0; i < Maps::kSize; ++i)
        for (int j = 0; j < Maps::kSize; ++j) values[i][j] += more[i][j];
    }
    transform<typename Maps::WeightGradient>(values, kernel);
    for (int tap = 0; tap < 9; ++tap)
      simd::store_partial(grad_w + (k * 9 + tap) * g.c + channel, kernel[tap / 3][tap % 3], left);
  }
}

}  // namespace tandem::kernels::winograd
