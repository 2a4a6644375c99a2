// What the window of a 2-D pooling looks like, and the shapes that follow from it.
#pragma once

#include "tandem/core/height_width.h"
#include "tandem/core/tensor.h"

#include <string_view>

namespace tandem::kernels {

/// As in PyTorch, the stride is the kernel where it is not given, and padding is at most half of the kernel.
struct Pool2dOptions {
  HeightWidth kernel = 2;
  HeightWidth stride = kernel;
  HeightWidth padding = 0;
  bool ceil_mode = false;         // a last window that only partly fits counts, too
  bool count_include_pad = true;  // average pooling: padding counts as zeros in the mean
};

/// Throws Error, in the name of `op`, where the options make no sense whatever the image.
void check_pool2d_options(std::string_view op, const Pool2dOptions& options);

/// Shape of the pooled output of `x_shape` (N,C,H,W). Throws Error, in the name of `op`, where the options make no
/// sense or the window is larger than the padded image.
Shape pool2d_output_shape(std::string_view op, const Shape& x_shape, const Pool2dOptions& options);

/// The rows (or columns) of the image that the window of one output row covers: [begin, end), clipped to the image.
/// `first` is where the window starts before clipping.
struct PoolRange {
  std::int64_t first, begin, end;
};

inline PoolRange pool_range(std::int64_t output, int axis, std::int64_t size, const Pool2dOptions& options) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t first = output * options.stride[i] - options.padding[i];
  return {first, std::max<std::int64_t>(first, 0), std::min(first + options.kernel[i], size)};
}

/// The outputs [begin, end) whose windows may cover `input`, out of `outputs`.
inline PoolRange covering_outputs(std::int64_t input, int axis, std::int64_t outputs, const Pool2dOptions& options) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t padded = input + options.padding[i];
  const std::int64_t begin = padded < options.kernel[i] ? 0 : (padded - options.kernel[i]) / options.stride[i] + 1;
  return {begin, begin, std::min(padded / options.stride[i] + 1, outputs)};
}

}  // namespace tandem::kernels
