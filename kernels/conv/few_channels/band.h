// Where the tiles of a convolution of few channels, their halos and patches lie.
#pragma once

#include "tandem/kernels/conv/few_channels/plan.h"
#include "tandem/kernels/device/divisor.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda::few_channels {

/// Products that one tensor-core instruction adds to a sum: the depth of taps and channels is padded to multiples.
constexpr int kInstructionDepth = 16;

/// Where a tile lies.
struct TilePlace {
  int image, line, column;  // its first output pixel
  int pixels;               // a run of output pixels from there on
};

/// All that a kernel needs to know of where things are; offsets in elements.
struct Band {
  int output_lines, output_columns;
  int image_lines, image_row;       // elements of an image's row: columns x channels
  int stride_down, stride_across;   // the former in lines
  int first_line, first_element;    // what tap 0 of output (0, 0) meets
  int lines, columns;               // of a whole tile
  int halo_lines, halo_row, pitch;  // elements of a line of the halo, and from one to the next
  int step_down, step_across;       // from tap to tap, the former in lines
  int depth, padded_depth;          // taps x channels
  int tiles;
  device::Divisor by_tiles_across, by_tiles_down, by_columns, by_channels, by_kernel_columns, by_depth, by_image_row;

  explicit Band(const ConvGeometry& g) {
    const auto int32 = [](std::int64_t value) { return static_cast<int>(value); };
    const TileExtent tile = extent_of_tile(g);
    output_lines = int32(g.p);
    output_columns = int32(g.q);
    image_lines = int32(g.h);
    image_row = int32(g.w * g.c);
    stride_down = int32(g.stride_h);
    stride_across = int32(g.stride_w * g.c);
    first_line = int32(-g.pad_h);
    first_element = int32(-g.pad_w * g.c);
    lines = int32(tile.lines);
    columns = int32(tile.columns);
    halo_lines = int32(tile.halo_lines);
    halo_row = int32(tile.halo_row);
    pitch = int32(pitch_of(tile.halo_row, g.c));
    step_down = int32(g.dilation_h);
    step_across = int32(g.dilation_w * g.c);
    depth = int32(g.r * g.s * g.c);
    padded_depth = (depth + kInstructionDepth - 1) / kInstructionDepth * kInstructionDepth;
    const int across = (output_columns + columns - 1) / columns, down = (output_lines + lines - 1) / lines;
    tiles = int32(g.n) * down * across;
    by_tiles_across = device::Divisor(across);
    by_tiles_down = device::Divisor(down);
    by_columns = device::Divisor(columns);
    by_channels = device::Divisor(g.c);
    by_kernel_columns = device::Divisor(g.s);
    by_depth = device::Divisor(depth);
    by_image_row = device::Divisor(image_row);
  }

  __host__ __device__ int halo_elements() const { return halo_lines * pitch; }

  __device__ TilePlace place(int tile) const {
    unsigned across = static_cast<unsigned>(tile);
    unsigned down = by_tiles_across.split(across);
    const int image = static_cast<int>(by_tiles_down.split(down));
    const int line = static_cast<int>(down) * lines, column = static_cast<int>(across) * columns;
    const int whole_lines = output_lines - line < lines ? output_lines - line : lines;
    const int whole_columns = output_columns - column < columns ? output_columns - column : columns;
    return {image, line, column, whole_lines * whole_columns};
  }

  /// The number of a tile's first output pixel among those of all images.
  __device__ int first_pixel(const TilePlace& at) const {
    return (at.image * output_lines + at.line) * output_columns + at.column;
  }

  /// Where in the halo the patch of a tile's output pixel begins, and what a depth adds to that: its tap and channel.
  __device__ int patch(int pixel) const {
    unsigned column = static_cast<unsigned>(pixel);
    const int line = static_cast<int>(by_columns.split(column));
    return line * stride_down * pitch + static_cast<int>(column) * stride_across;
  }
  __device__ int within_patch(int at) const {
    unsigned channel = static_cast<unsigned>(at);
    unsigned column = by_channels.split(channel);
    const int line = static_cast<int>(by_kernel_columns.split(column));
    return line * step_down * pitch + static_cast<int>(column) * step_across + static_cast<int>(channel);
  }
};

}  // namespace tandem::kernels::cuda::few_channels
