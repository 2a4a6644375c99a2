// Tiles of output pixels, and their halos in shared memory.
#pragma once

#include "tandem/kernels/conv/stationary/plan.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/divisor.h"
#include "tandem/kernels/device/swizzle.h"

namespace tandem::kernels::cuda::stationary {

/// A tile's image and first output pixel.
struct TilePlace {
  int image, line, column;
};

/// The pixel of a tile that one of its rows is. Rows go through the tile line by line or, where kWindow is 2, by
/// windows of 2 x 2 pixels: four neighbouring rows are one.
template <int kWindow>
struct TilePixel {
  static constexpr int kWindowRows = kWindow * kWindow, kLineWindows = kTileColumns / kWindow;

  int line, column;

  __device__ explicit TilePixel(int row)
      : line(row / (kWindowRows * kLineWindows) * kWindow + row % kWindowRows / kWindow),
        column(row / kWindowRows % kLineWindows * kWindow + row % kWindow) {}
};

/// All tiles of a task, image by image.
struct TileGrid {
  int lines, columns;  // output pixels of an image
  int tile_lines, tiles;
  device::Divisor by_down, by_across;

  TileGrid(std::int64_t images, std::int64_t output_lines, std::int64_t output_columns, std::int64_t lines_of_tile)
      : lines(static_cast<int>(output_lines)),
        columns(static_cast<int>(output_columns)),
        tile_lines(static_cast<int>(lines_of_tile)),
        tiles(static_cast<int>(images * tiles_of_image(output_lines, output_columns, lines_of_tile))),
        by_down(tiles_along(output_lines, lines_of_tile)),
        by_across(tiles_along(output_columns, kTileColumns)) {}

  __device__ TilePlace place(int tile) const {
    unsigned across = static_cast<unsigned>(tile);
    unsigned down = by_across.split(across);
    const int image = static_cast<int>(by_down.split(down));
    return {image, static_cast<int>(down) * tile_lines, static_cast<int>(across) * kTileColumns};
  }

  /// The number among the output pixels of all images, or -1 past the end of an image.
  template <int kWindow>
  __device__ int pixel(const TilePlace& tile, const TilePixel<kWindow>& in_tile) const {
    const int line = tile.line + in_tile.line, column = tile.column + in_tile.column;
    return line < lines && column < columns ? (tile.image * lines + line) * columns + column : -1;
  }

  __device__ int pixel_of_row(const TilePlace& tile, int row) const { return pixel(tile, TilePixel<1>(row)); }

  /// How many of a tile's pixels are there.
  __device__ int pixels(const TilePlace& tile) const {
    const int lines_left = lines - tile.line, columns_left = columns - tile.column;
    return (lines_left < tile_lines ? lines_left : tile_lines) *
           (columns_left < kTileColumns ? columns_left : kTileColumns);
  }
};

/// The place in shared memory, in elements, of a vector of 8 channels of a pixel of a halo whose pixels have kChannels.
template <int kChannels>
__device__ constexpr int halo_place(int pixel, int vector) {
  return device::swizzled<kChannels / 8>(pixel, vector) * 8;
}

/// Taps as steps in a halo, in pixels: from a tile's pixel to what its tap (0, 0) meets, and from tap to tap.
struct HaloTaps {
  int down, across, pitch;
  int first, step_down, step_across;
};

/// From tap to tap: the pixel of the halo that the tap of a tile's pixel meets.
class TapWalk {
 public:
  __device__ TapWalk(const HaloTaps& taps, int pixel) : taps_(taps), pixel_(pixel + taps.first) {}

  __device__ int pixel() const { return pixel_; }

  /// To the next tap; the last one is not left.
  __device__ void advance() {
    if (++tap_ >= taps_.down * taps_.across) return;
    pixel_ += taps_.step_across;
    if (++column_ < taps_.across) return;
    pixel_ += taps_.step_down - taps_.across * taps_.step_across;
    column_ = 0;
  }

 private:
  const HaloTaps& taps_;
  int pixel_, tap_ = 0, column_ = 0;
};

/// Images, and which of their pixels the halo of a tile is.
template <typename T>
struct HaloImages {
  const T* images;
  int lines, columns, channels;
  int first_line, first_column;  // of a halo, as seen from the first pixel of its tile
  int halo_lines, halo_columns;
  HaloTaps taps;
  device::Divisor by_halo_columns;

  HaloImages(const T* data, const PatchAxis& down, const PatchAxis& across, std::int64_t channel_count,
             const HaloExtent& halo)
      : images(data),
        lines(down.inputs),
        columns(across.inputs),
        channels(static_cast<int>(channel_count)),
        first_line(down.first + nearest(down)),
        first_column(across.first + nearest(across)),
        halo_lines(static_cast<int>(halo.lines)),
        halo_columns(static_cast<int>(halo.columns)),
        taps{down.taps, across.taps, static_cast<int>(halo.pitch), 0, 0, across.step},
        by_halo_columns(halo.columns) {
    taps.first = -nearest(down) * taps.pitch - nearest(across);
    taps.step_down = down.step * taps.pitch;
  }

  /// The offset of the tap that lies nearest to the image's beginning, from tap 0.
  static int nearest(const PatchAxis& axis) { return std::min(0, (axis.taps - 1) * axis.step); }

  /// Starts this thread's copies of a halo; zeros where there is no pixel or channel.
  template <int kChannels, int kThreads>
  __device__ void copy(const TilePlace& at, T* halo) const {
    constexpr int kVectors = kChannels / 8;
    const int top = at.line + first_line, left = at.column + first_column;
    const int vectors = halo_lines * halo_columns * kVectors;
#pragma unroll 1  // the sums of the gradient of weights are in registers meanwhile
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += kThreads) {
      const int vector = i % kVectors;
      unsigned column = static_cast<unsigned>(i / kVectors);
      const int line = static_cast<int>(by_halo_columns.split(column)), y = top + line;
      const int x = left + static_cast<int>(column);
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(lines) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(columns) && vector * 8 < channels;
      const int from = inside ? ((at.image * lines + y) * columns + x) * channels + vector * 8 : 0;
      device::cp_async<16>(halo + halo_place<kChannels>(line * taps.pitch + static_cast<int>(column), vector),
                           images + from, inside ? 16 : 0);
    }
  }
};

}  // namespace tandem::kernels::cuda::stationary
