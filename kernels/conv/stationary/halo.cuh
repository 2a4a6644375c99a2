// Tiles of output pixels, and their halos in shared memory.
#pragma once

#include "kernels/conv/stationary/plan.h"
#include "kernels/device/atoms.h"
#include "kernels/device/divisor.h"
#include "kernels/device/swizzle.h"

namespace tandem::kernels::cuda::stationary {

/// A tile's image and first output pixel.
struct TilePlace {
  int image, line, column;
};

/// All tiles of a task, image by image.
struct TileGrid {
  int lines, columns;  // output pixels of an image
  int tile_lines, tiles;
  device::Divisor by_down, by_across;

  TileGrid(const Task& task, const Plan& plan)
      : lines(static_cast<int>(task.lines())),
        columns(static_cast<int>(task.line())),
        tile_lines(static_cast<int>(plan.tile_lines)),
        tiles(static_cast<int>(plan.tiles(task.images))),
        by_down(plan.tiles_down),
        by_across(plan.tiles_across) {}

  __device__ TilePlace place(int tile) const {
    unsigned across = static_cast<unsigned>(tile);
    unsigned down = by_across.split(across);
    const int image = static_cast<int>(by_down.split(down));
    return {image, static_cast<int>(down) * tile_lines, static_cast<int>(across) * kTileColumns};
  }
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

/// The images of a task, and which of their pixels the halo of a tile is.
template <typename T>
struct HaloImages {
  const T* images;
  int lines, columns, channels;
  int first_line, first_column;  // of a halo, as seen from the first pixel of its tile
  int halo_lines, halo_columns, pitch;
  int taps_down, taps_across;
  int first_tap, tap_down, tap_across;  // in the halo, from a tile's pixel to what its tap (0, 0) meets, tap to tap
  device::Divisor by_halo_columns;

  HaloImages(const T* data, const Task& task, const Plan& plan)
      : images(data),
        lines(task.down.inputs),
        columns(task.across.inputs),
        channels(static_cast<int>(task.channels)),
        first_line(task.down.first + nearest(task.down)),
        first_column(task.across.first + nearest(task.across)),
        halo_lines(static_cast<int>(plan.halo_lines)),
        halo_columns(static_cast<int>(plan.halo_columns)),
        pitch(static_cast<int>(plan.pitch)),
        taps_down(task.down.taps),
        taps_across(task.across.taps),
        first_tap(-nearest(task.down) * pitch - nearest(task.across)),
        tap_down(task.down.step * pitch),
        tap_across(task.across.step),
        by_halo_columns(plan.halo_columns) {}

  /// The offset of the tap that lies nearest to the image's beginning, from tap 0.
  static int nearest(const PatchAxis& axis) { return std::min(0, (axis.taps - 1) * axis.step); }

  /// The place, in elements, of a piece of 8 channels of a pixel of a halo.
  template <typename Shape>
  static __device__ int place(int pixel, int piece) {
    return device::swizzled<Shape::kChannels / 8>(pixel, piece) * 8;
  }

  /// Starts this thread's copies of a halo; zeros where there is no pixel or channel.
  template <typename Shape>
  __device__ void copy(const TilePlace& at, T* halo) const {
    constexpr int kPieces = Shape::kChannels / 8;
    const int top = at.line + first_line, left = at.column + first_column;
    const int pieces = halo_lines * halo_columns * kPieces;
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += Shape::kThreads) {
      const int piece = i % kPieces;
      unsigned column = static_cast<unsigned>(i / kPieces);
      const int line = static_cast<int>(by_halo_columns.split(column)), y = top + line;
      const int x = left + static_cast<int>(column);
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(lines) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(columns) && piece * 8 < channels;
      const int from = inside ? ((at.image * lines + y) * columns + x) * channels + piece * 8 : 0;
      device::cp_async<16>(halo + place<Shape>(line * pitch + static_cast<int>(column), piece), images + from,
                           inside ? 16 : 0);
    }
  }
};

}  // namespace tandem::kernels::cuda::stationary
