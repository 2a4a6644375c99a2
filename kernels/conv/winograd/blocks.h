// How Winograd convolution cuts images into tiles, and how transformed data is laid out.
#pragma once

#include "tandem/kernels/cast/half_vector.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/winograd/transforms.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::winograd {

using simd::kLanes;

constexpr std::int64_t blocks_of(std::int64_t channels) { return (channels + kLanes - 1) / kLanes; }

/// The output tiles of all images, kOutputs x kOutputs each, in one sequence.
template <int kOutputs>
struct Tiles {
  std::int64_t down, across, count;

  explicit Tiles(const ConvGeometry& g)
      : down((g.p + kOutputs - 1) / kOutputs), across((g.q + kOutputs - 1) / kOutputs), count(g.n * down * across) {}

  struct Place {
    std::int64_t image, row, column;  // row and column of the tile's first output pixel
  };
  Place place(std::int64_t tile) const {
    const std::int64_t in_image = tile % (down * across);
    return {tile / (down * across), in_image / across * kOutputs, in_image % across * kOutputs};
  }
};

/// Transformed values of up to `tiles` tiles, as [frequency][channel block][tile][lane]. One tile and one frequency
/// more than needed keep the many parallel streams out of each other's cache sets.
struct TileBuffer {
  float* data;
  std::int64_t block;      // floats from one channel block to the next
  std::int64_t frequency;  // from one frequency to the next

  TileBuffer(float* at, std::int64_t blocks, std::int64_t tiles)
      : data(at), block((tiles + 1) * kLanes), frequency((blocks * (tiles + 1) | 1) * kLanes) {}

  /// Without the first `tile` tiles.
  TileBuffer from(std::int64_t tile) const {
    TileBuffer rest = *this;
    rest.data += tile * kLanes;
    return rest;
  }

  static std::int64_t floats(std::int64_t blocks, std::int64_t tiles, std::int64_t frequencies) {
    return TileBuffer(nullptr, blocks, tiles).frequency * frequencies;
  }
};

/// Addresses of a square patch of pixels; those outside the image point at zeros.
template <typename T, int kSide>
struct Patch {
  const T* pixel[kSide][kSide];
  std::int64_t element[kSide][kSide];  // index of the pixel's first channel, 0 outside

  Patch(const T* images, const T* zeros, std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t height,
        std::int64_t width, std::int64_t channels) {
    bool column_inside[kSide];
    for (int j = 0; j < kSide; ++j) column_inside[j] = column + j >= 0 && column + j < width;
    for (int i = 0; i < kSide; ++i) {
      const bool row_inside = row + i >= 0 && row + i < height;
      const std::int64_t line = ((image * height + row + i) * width + column) * channels;
#pragma GCC unroll 8
      for (int j = 0; j < kSide; ++j) {
        const bool inside = row_inside && column_inside[j];
        element[i][j] = inside ? line + j * channels : 0;
        pixel[i][j] = inside ? images + element[i][j] : zeros;
      }
    }
  }

  /// One vector of channels per pixel; with kMasked, zero where the mask bit is not set.
  template <bool kMasked>
  [[gnu::always_inline]] void load(std::int64_t channel, std::int64_t channels, const std::uint8_t* mask,
                                   Vec (&out)[kSide][kSide]) const {
    const std::int64_t left = channels - channel;
    if (left < kLanes) {
      for (int i = 0; i < kSide; ++i)
        for (int j = 0; j < kSide; ++j) out[i][j] = simd::load_partial(pixel[i][j] + channel, left);
      return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < kSide; ++j) {
        out[i][j] = simd::load(pixel[i][j] + channel);
        if constexpr (kMasked) out[i][j] = simd::keep(out[i][j], simd::load_bits(mask, element[i][j] + channel));
      }
  }
};

/// Stores one transformed tile: out[i][j] goes to frequency i * kSize + j.
template <int kSize>
[[gnu::always_inline]] inline void scatter(const Vec (&values)[kSize][kSize], float* to, std::int64_t frequency) {
#pragma GCC unroll 8
  for (int i = 0; i < kSize; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kSize; ++j) simd::store(to + (i * kSize + j) * frequency, values[i][j]);
}

template <int kSize>
[[gnu::always_inline]] inline void gather(const float* from, std::int64_t frequency, Vec (&values)[kSize][kSize]) {
#pragma GCC unroll 8
  for (int i = 0; i < kSize; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kSize; ++j) values[i][j] = simd::load(from + (i * kSize + j) * frequency);
}

}  // namespace tandem::kernels::winograd
