// What the pooling kernels share: 32-bit geometry, and the walk over the rows of channels_last images.
#pragma once

#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/pool/pool2d_options.h"

#include <type_traits>

namespace tandem::kernels::cuda {

/// One axis of a pooling.
struct PoolAxis {
  int size, outputs, kernel, stride, padding;
};

struct PoolShape {
  std::int64_t images;
  int channels;
  PoolAxis rows, columns;
  bool count_include_pad;
};

/// Throws Error where a row of pixels is too long for 32-bit offsets.
inline PoolShape make_pool_shape(const Shape& x, const Shape& y, const Pool2dOptions& options) {
  require(x[3] * x[1] < (1 << 30) && x[2] < (1 << 30), "pooling: rows of {} elements are too long for a GPU",
          x[3] * x[1]);
  const auto axis = [&](std::size_t i) {
    const int dim = 2 + static_cast<int>(i);
    return PoolAxis{static_cast<int>(x[dim]), static_cast<int>(y[dim]), static_cast<int>(options.kernel[i]),
                    static_cast<int>(options.stride[i]), static_cast<int>(options.padding[i])};
  };
  return {x[0], static_cast<int>(x[1]), axis(0), axis(1), options.count_include_pad};
}

/// Numbers [begin, end); `first` is where a window starts before it is clipped to the image.
struct PoolSpan {
  int first, begin, end;
};

/// The inputs under the window of one output.
__device__ inline PoolSpan inputs_of(const PoolAxis& axis, int output) {
  const int first = output * axis.stride - axis.padding;
  return {first, max(first, 0), min(first + axis.kernel, axis.size)};
}

/// The outputs whose windows may cover `input`.
__device__ inline PoolSpan outputs_over(const PoolAxis& axis, int input) {
  const int padded = input + axis.padding;
  const int begin = padded < axis.kernel ? 0 : (padded - axis.kernel) / axis.stride + 1;
  return {begin, begin, min(padded / axis.stride + 1, axis.outputs)};
}

/// How many rows (columns) of the window average pooling divides by.
__device__ inline int counted(const PoolAxis& axis, const PoolSpan& window, bool count_include_pad) {
  if (!count_include_pad) return window.end - window.begin;
  return min(window.first + axis.kernel, axis.size + axis.padding) - window.first;
}

/// Calls visit(image, row, column, channel) for every kWidth channels of every pixel of images of `height` x `width`.
/// Blocks share out rows (blockIdx.y) and parts of a row (blockIdx.x): neighbouring threads have neighbouring channels,
/// and all threads of a block the same row.
template <int kWidth, typename Visit>
__device__ void for_each_pixel(std::int64_t images, int height, int width, int channels, Visit&& visit) {
  const int groups = channels / kWidth, step = static_cast<int>(gridDim.x * blockDim.x);
  for (std::int64_t line = blockIdx.y; line < images * height; line += gridDim.y) {
    const std::int64_t image = line / height;
    const int row = static_cast<int>(line - image * height);
    for (int i = static_cast<int>(device::thread_in_grid()); i < width * groups; i += step) {
      const int column = i / groups;
      visit(image, row, column, (i - column * groups) * kWidth);
    }
  }
}

/// Blocks beside each other in y: enough for any GPU; more rows than that take turns.
constexpr std::int64_t kMostLines = 4096;

/// The launch that goes with for_each_pixel.
struct PixelGrid {
  dim3 grid, block;

  PixelGrid(std::int64_t images, std::int64_t height, std::int64_t width, std::int64_t groups) {
    const std::int64_t threads = std::min<std::int64_t>((width * groups + 31) / 32 * 32, device::kThreadsPerBlock);
    block = dim3(static_cast<unsigned>(threads));
    grid =
        dim3(device::blocks_for(width * groups, threads), static_cast<unsigned>(std::min(images * height, kMostLines)));
  }
};

/// Calls visit with the number of channels that a thread takes at once, as an integral_constant: kVectorWidth<T> where
/// the number of channels and all addresses allow it, else 1.
template <typename T, typename Visit, typename... Pointers>
void dispatch_width(std::int64_t channels, Visit&& visit, Pointers... pointers) {
  constexpr int kWidth = device::kVectorWidth<T>;
  if (channels % kWidth == 0 && device::aligned_for_vectors(pointers...)) {
    return visit(std::integral_constant<int, kWidth>{});
  }
  visit(std::integral_constant<int, 1>{});
}

}  // namespace tandem::kernels::cuda
