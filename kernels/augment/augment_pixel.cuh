// One pixel of an augmented image, computed from the stored bytes: moved, rotated, recoloured. The operations and their
// order are those of augment_images_cpu.cpp, and neither file is compiled with fused multiply-adds: both give the same
// bits.
#pragma once

#include "tandem/kernels/augment/image_task.h"
#include "tandem/kernels/augment/pad2d_implementations.h"

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

namespace {

/// The stored planes of one image and what is done to it.
struct AugmentedImage {
  const std::uint8_t* bytes;
  int height, width;
  BorderMode border;
  ImageTask task;

  /// Whether values are computed of others, from 0 to 1; else they stay bytes, 0 to 255, which only move.
  __device__ bool mixes() const { return task.rotates || task.changes_color; }

  /// Value of pixel (y, x) of the shifted and flipped image; black outside of it.
  __device__ float moved(const std::uint8_t* plane, int y, int x) const {
    if (y < 0 || y >= height || x < 0 || x >= width) return 0.0f;
    std::int64_t row = std::int64_t{y} + task.shift_y;
    std::int64_t column = std::int64_t{task.flip ? width - 1 - x : x} + task.shift_x;
    if (border == BorderMode::reflect) {
      row = kernels::detail::reflect(row, height);
      column = kernels::detail::reflect(column, width);
    } else if (row < 0 || row >= height || column < 0 || column >= width) {
      return 0.0f;
    }
    const float byte = static_cast<float>(plane[row * width + column]);
    return mixes() ? byte * (1.0f / 255.0f) : byte;
  }

  /// The same, then rotated: bilinear between the four pixels around the point that (y, x) comes from.
  __device__ float sample(int channel, int y, int x) const {
    const std::uint8_t* const plane = bytes + std::int64_t{channel} * height * width;
    if (!task.rotates) return moved(plane, y, x);
    const float centre_x = 0.5f * static_cast<float>(width - 1), centre_y = 0.5f * static_cast<float>(height - 1);
    const float dx = static_cast<float>(x) - centre_x, dy = static_cast<float>(y) - centre_y;
    const float from_x = task.cosine * dx - task.sine * dy + centre_x;
    const float from_y = task.sine * dx + task.cosine * dy + centre_y;
    const int left = static_cast<int>(floorf(from_x)), top = static_cast<int>(floorf(from_y));
    const float u = from_x - static_cast<float>(left), v = from_y - static_cast<float>(top);
    const float upper = between(moved(plane, top, left), moved(plane, top, left + 1), u);
    const float lower = between(moved(plane, top + 1, left), moved(plane, top + 1, left + 1), u);
    return between(upper, lower, v);
  }

  __device__ static float between(float a, float b, float share) { return a + share * (b - a); }

  __device__ bool is_cut(int y, int x) const {
    return y >= task.cutout.top && y < task.cutout.bottom && x >= task.cutout.left && x < task.cutout.right;
  }
};

__device__ float blend(float a, float b, float factor) {
  return fminf(fmaxf(factor * a + (1.0f - factor) * b, 0.0f), 1.0f);
}

__device__ float grey(const float (&rgb)[3]) { return 0.2989f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }

/// The changes of colour on kValues values in [0, 1] of one pixel, in their order: 3 are red, green and blue, others
/// have no saturation. `mean_grey` is that of the image; to compute it, only the changes before contrast are made.
template <int kValues>
__device__ void adjust_color(float (&values)[kValues], const ImageTask& task, float mean_grey, bool before_contrast) {
#pragma unroll
  for (int place = 0; place < 3; ++place) {
    const int what = task.color_order[place];
    if (before_contrast && what == 1) return;
    float towards = what == 1 ? mean_grey : 0.0f;
    if (what == 2) {
      if constexpr (kValues != 3)
        continue;
      else
        towards = grey(values);
    }
    const float factor = what == 0 ? task.brightness : what == 1 ? task.contrast : task.saturation;
    if (factor == 1.0f) continue;
#pragma unroll
    for (int i = 0; i < kValues; ++i) values[i] = blend(values[i], towards, factor);
  }
}

}  // namespace

}  // namespace tandem::kernels::cuda
