// How Winograd convolution cuts images into tiles, and how transformed data is laid out.
#pragma once

#include "tandem/kernels/cast/half_vector.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/winograd/choice.h"
#include "tandem/kernels/conv/winograd/transforms.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::winograd {

using simd::kLanes;

constexpr std::int64_t blocks_of(std::int64_t channels) { return (channels + kLanes - 1) / kLanes; }

/// The frequencies of a tile that go into its outputs: all, or all but those of the last row or column.
struct Reach {
  bool last_row = true, last_column = true;
};

/// The output tiles of all images, kOutputs x kOutputs each, in one sequence.
///
/// A tile that the lower edge cuts does not need its last row of frequencies, as the products there go into its last
/// row of outputs alone; at the right edge the same is true of columns. So that each frequency is multiplied for one
/// range of tiles, these come in four parts: cut on the right, whole, cut below, and cut both ways.
template <int kOutputs>
class Tiles {
 public:
  explicit Tiles(const ConvGeometry& g) : rows_(g.p / kOutputs), columns_(g.q / kOutputs) {
    const bool below = g.p % kOutputs > 0, right = g.q % kOutputs > 0;
    if (ProductsPerImage(g, kOutputs).leaves_out()) {
      cut_rows_ = below, cut_columns_ = right;
    } else {
      rows_ += below, columns_ += right;
    }
    const std::int64_t in_image[kParts] = {rows_ * cut_columns_, rows_ * columns_, cut_rows_ * columns_,
                                           cut_rows_ * cut_columns_};
    for (int part = 0; part < kParts; ++part) first_[part + 1] = first_[part] + g.n * in_image[part];
  }

  std::int64_t count() const { return first_[kParts]; }

  struct Place {
    std::int64_t image, row, column;  // row and column of the tile's first output pixel
    Reach reach;
  };
  Place place(std::int64_t tile) const {
    int part = 0;
    while (tile >= first_[part + 1]) ++part;
    const bool below = part >= 2, right = part == 0 || part == 3;
    const std::int64_t rows = below ? 1 : rows_, columns = right ? 1 : columns_;
    const std::int64_t in_part = tile - first_[part], in_image = in_part % (rows * columns);
    return {.image = in_part / (rows * columns),
            .row = (below ? rows_ : in_image / columns) * kOutputs,
            .column = (right ? columns_ : in_image % columns) * kOutputs,
            .reach = {.last_row = !below, .last_column = !right}};
  }

  struct Range {
    std::int64_t begin, end;
    std::int64_t count() const { return end - begin; }
  };
  /// Those of tiles [begin, end) that need frequency `row`, `column`.
  Range needing(int row, int column, std::int64_t begin, std::int64_t end) const {
    constexpr int kLast = kOutputs + 1;
    const std::int64_t from = column == kLast ? first_[1] : 0;
    const std::int64_t to = row == kLast ? first_[2] : column == kLast ? first_[3] : count();
    begin = std::min(std::max(begin, from), end);
    return {begin, std::max(begin, std::min(end, to))};
  }

 private:
  static constexpr int kParts = 4;
  std::int64_t rows_, columns_;                  // of tiles in an image that leave out nothing
  std::int64_t cut_rows_ = 0, cut_columns_ = 0;  // 1 where there is a row or column of others
  std::int64_t first_[kParts + 1] = {};          // tile of each part, and behind the last
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

/// Calls visit(row, column) for the frequencies of a tile that are within `reach`.
template <int kSize, typename Visit>
[[gnu::always_inline]] inline void for_each_frequency(Reach reach, Visit&& visit) {
  constexpr int kLast = kSize - 1;
#pragma GCC unroll 8
  for (int i = 0; i < kLast; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kLast; ++j) visit(i, j);
  if (reach.last_row)
#pragma GCC unroll 8
    for (int j = 0; j < kLast; ++j) visit(kLast, j);
  if (reach.last_column)
#pragma GCC unroll 8
    for (int i = 0; i < kLast; ++i) visit(i, kLast);
  if (reach.last_row && reach.last_column) visit(kLast, kLast);
}

/// Stores one transformed tile: values[i][j] goes to frequency i * kSize + j. Frequencies out of reach are left as they
/// are.
template <int kSize>
[[gnu::always_inline]] inline void scatter(const Vec (&values)[kSize][kSize], float* to, std::int64_t frequency,
                                           Reach reach = {}) {
  for_each_frequency<kSize>(reach, [&](int i, int j) { simd::store(to + (i * kSize + j) * frequency, values[i][j]); });
}

/// The other way round; frequencies out of reach are zero.
template <int kSize>
[[gnu::always_inline]] inline void gather(const float* from, std::int64_t frequency, Vec (&values)[kSize][kSize],
                                          Reach reach = {}) {
#pragma GCC unroll 8
  for (int i = 0; i < kSize; ++i) values[i][kSize - 1] = values[kSize - 1][i] = Vec{};
  for_each_frequency<kSize>(reach,
                            [&](int i, int j) { values[i][j] = simd::load(from + (i * kSize + j) * frequency); });
}

}  // namespace tandem::kernels::winograd
