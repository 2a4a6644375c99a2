// Moves images into the Winograd domain and back, tile by tile.
#pragma once

#include "tandem/kernels/conv/winograd/blocks.h"
#include "tandem/kernels/gemm/simd.h"

namespace tandem::kernels::winograd {

/// Outputs of this size are stored past the caches, which saves reading the lines first.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{4} << 20;

/// V = B^T d B for tiles [begin, end); tile begin + i of the image sequence goes to place i of `out`, as far as its
/// frequencies are needed. d are g's input pixels, which count only where `mask`, if kMasked, has its bit set. `zeros`
/// holds g.c zeros.
template <int kOutputs, bool kMasked, typename T>
void transform_input(const ConvGeometry& g, const T* x, const std::uint8_t* mask, const T* zeros, std::int64_t begin,
                     std::int64_t end, const TileBuffer& out) {
  using Maps = Transforms<kOutputs>;
  const Tiles<kOutputs> tiles(g);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const auto at = tiles.place(tile);
    const Patch<T, Maps::kSize> patch(x, zeros, at.image, at.row - g.pad_h, at.column - g.pad_w, g.h, g.w, g.c);
    float* to = out.data + (tile - begin) * kLanes;
    for (std::int64_t channel = 0; channel < g.c; channel += kLanes, to += out.block) {
      Vec pixels[Maps::kSize][Maps::kSize], mapped[Maps::kSize][Maps::kSize];
      patch.template load<kMasked>(channel, g.c, mask, pixels);
      transform<typename Maps::Input>(pixels, mapped);
      scatter(mapped, to, out.frequency, at.reach);
    }
  }
}

/// W = A dY A^T likewise for channels [k_begin, k_end) of the gradient of g's output, k_begin a multiple of kLanes;
/// adds the gradient of each of these channels to `bias_sums`.
template <int kOutputs, bool kMasked, typename T>
void transform_gradient(const ConvGeometry& g, MaskedGradient<T> grad_y, const T* zeros, std::int64_t begin,
                        std::int64_t end, std::int64_t k_begin, std::int64_t k_end, const TileBuffer& out,
                        float* bias_sums) {
  using Maps = Transforms<kOutputs>;
  const Tiles<kOutputs> tiles(g);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const auto at = tiles.place(tile);
    const Patch<T, kOutputs> patch(grad_y.data, zeros, at.image, at.row, at.column, g.p, g.q, g.k);
    float* to = out.data + (tile - begin) * kLanes;
    for (std::int64_t channel = k_begin; channel < k_end; channel += kLanes, to += out.block) {
      Vec pixels[kOutputs][kOutputs], mapped[Maps::kSize][Maps::kSize];
      patch.template load<kMasked>(channel, g.k, grad_y.mask, pixels);
      Vec sum{};
#pragma GCC unroll 8
      for (int i = 0; i < kOutputs; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < kOutputs; ++j) sum += pixels[i][j];
      float* const total = bias_sums + channel - k_begin;
      simd::store(total, simd::load(total) + sum);
      transform<typename Maps::Gradient>(pixels, mapped);
      scatter(mapped, to, out.frequency, at.reach);
    }
  }
}

/// simd::stream for floats. A vector of halves is half a line, which would go to memory as such: they are stored.
template <typename T>
[[gnu::always_inline]] inline void stream_vector(T* to, Vec value) {
  if constexpr (sizeof(T) == sizeof(float))
    simd::stream(to, value);
  else
    simd::store(to, value);
}

/// Y = A^T M A for tiles [begin, end), M at places 0, 1, ... of `from`, then the epilogue. A mask needs rows of whole
/// bytes (simd.h).
template <int kOutputs, typename T>
void transform_output(const ConvGeometry& g, const TileBuffer& from, std::int64_t begin, std::int64_t end,
                      const ConvEpilogue& epilogue, T* y) {
  using Maps = Transforms<kOutputs>;
  const Tiles<kOutputs> tiles(g);
  const bool streamed = g.output_numel() * std::int64_t{sizeof(T)} >= kStreamedBytes;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const auto at = tiles.place(tile);
    const std::int64_t rows = std::min<std::int64_t>(kOutputs, g.p - at.row);
    const std::int64_t columns = std::min<std::int64_t>(kOutputs, g.q - at.column);
    const std::int64_t origin = ((at.image * g.p + at.row) * g.q + at.column) * g.k;
    const float* products = from.data + (tile - begin) * kLanes;
    for (std::int64_t channel = 0; channel < g.k; channel += kLanes, products += from.block) {
      Vec values[Maps::kSize][Maps::kSize], pixels[kOutputs][kOutputs];
      gather(products, from.frequency, values, at.reach);
      transform<typename Maps::Output>(values, pixels);
      const std::int64_t left = std::min<std::int64_t>(kLanes, g.k - channel);
      Vec bias{};
      if (epilogue.bias != nullptr) bias = simd::load_partial(epilogue.bias + channel, left);
#pragma GCC unroll 8
      for (int i = 0; i < kOutputs; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < kOutputs; ++j) {
          if (i >= rows || j >= columns) continue;
          const std::int64_t element = origin + (i * g.q + j) * g.k + channel;
          Vec value = pixels[i][j] + bias;
          if (epilogue.mask != nullptr) simd::store_bits(epilogue.mask, element, simd::stored_positive_bits<T>(value));
          if (epilogue.relu) value = simd::relu(value);
          if (left < kLanes)
            simd::store_partial(y + element, value, left);
          else if (streamed)
            stream_vector(y + element, value);
          else
            simd::store(y + element, value);
        }
    }
  }
  if (streamed) simd::finish_streams();
}

}  // namespace tandem::kernels::winograd
