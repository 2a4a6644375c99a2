// Boxes of pixels, and which pixels their rows are.
#pragma once

#include "tandem/kernels/conv/warpgroup/plan.h"
#include "tandem/kernels/device/divisor.h"

namespace tandem::kernels::cuda::warpgroup {

/// A box's first image and pixel.
struct BoxPlace {
  int image, line, column;
};

/// All boxes over images, along lines first.
struct BoxGrid {
  PixelBox box;
  int images, lines, columns;
  int boxes;
  device::Divisor by_down, by_across;

  BoxGrid(const PixelBox& shape, std::int64_t image_count, std::int64_t line_count, std::int64_t column_count)
      : box(shape),
        images(static_cast<int>(image_count)),
        lines(static_cast<int>(line_count)),
        columns(static_cast<int>(column_count)),
        boxes(static_cast<int>(boxes_of(shape, image_count, line_count, column_count))),
        by_down(tiles_along(line_count, shape.lines())),
        by_across(tiles_along(column_count, shape.columns())) {}

  __device__ BoxPlace place(int index) const {
    unsigned across = static_cast<unsigned>(index);
    unsigned down = by_across.split(across);
    const int group = static_cast<int>(by_down.split(down));
    return {group * box.images(), static_cast<int>(down) * box.lines(), static_cast<int>(across) * box.columns()};
  }

  /// The number among all pixels of a box's row, or -1 past the end of lines, images or all.
  __device__ int pixel_of_row(const BoxPlace& at, int row) const {
    const BoxPixel in_box = box.pixel(row);
    const int image = at.image + in_box.image, line = at.line + in_box.line, column = at.column + in_box.column;
    return column < columns && line < lines && image < images ? (image * lines + line) * columns + column : -1;
  }
};

}  // namespace tandem::kernels::cuda::warpgroup
