// Shape arithmetic of 2-D pooling, as PyTorch defines it.
#include "tandem/kernels/pool/pool2d_options.h"

#include <algorithm>
#include <limits>

namespace tandem::kernels {

namespace {

void check_axis(std::string_view op, std::size_t axis, const Pool2dOptions& options) {
  const std::int64_t kernel = options.kernel[axis], stride = options.stride[axis], padding = options.padding[axis];
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // no sum overflows
  require(kernel >= 1 && stride >= 1 && std::max(kernel, stride) <= kMost,
          "{}: kernel and stride must be at least 1 and at most {}, got kernel {} and stride {}", op, kMost, kernel,
          stride);
  require(padding >= 0 && padding <= kernel / 2, "{}: padding must lie between 0 and half of the kernel {}, got {}", op,
          kernel, padding);
}

std::int64_t output_size(std::string_view op, int axis, const Shape& x_shape, const Pool2dOptions& options) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t size = x_shape[2 + axis];
  const std::int64_t kernel = options.kernel[i], stride = options.stride[i], padding = options.padding[i];
  check_axis(op, i, options);
  const std::int64_t room = size + 2 * padding - kernel;
  require(room >= 0, "{}: a window of {} does not fit the {} of {} with padding {}", op, kernel,
          axis == 0 ? "height" : "width", to_string(x_shape), padding);
  std::int64_t outputs = (room + (options.ceil_mode ? stride - 1 : 0)) / stride + 1;
  // The last window must start inside the image or its leading padding.
  if (options.ceil_mode && (outputs - 1) * stride >= size + padding) --outputs;
  return outputs;
}

}  // namespace

void check_pool2d_options(std::string_view op, const Pool2dOptions& options) {
  for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) check_axis(op, axis, options);
}

Shape pool2d_output_shape(std::string_view op, const Shape& x_shape, const Pool2dOptions& options) {
  require(x_shape.rank() == 4, "{}: needs images [N, C, H, W], got {}", op, to_string(x_shape));
  return {x_shape[0], x_shape[1], output_size(op, 0, x_shape, options), output_size(op, 1, x_shape, options)};
}

}  // namespace tandem::kernels
