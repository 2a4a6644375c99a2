// Padding: checks and choice of implementation.
#include "tandem/kernels/augment/pad2d.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tandem/kernels/cuda_choice.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& small, const Pad2dOptions& options, const Tensor& large) {
  require(small.defined() && large.defined(), "{}: needs defined tensors, got {} and {}", op, describe(small),
          describe(large));
  require(is_floating(small.dtype()) && small.dtype() == large.dtype() && small.device() == large.device(),
          "{}: {} on {} and {} on {} must have one floating dtype and one device", op, describe(small),
          name_of(small.device()), describe(large), name_of(large.device()));
  const Shape expected = pad2d_output_shape(small.shape(), options);
  require(large.shape() == expected, "{}: padding {} gives {}, not {}", op, describe(small), to_string(expected),
          describe(large));
  require(small.storage() != large.storage(), "{}: input and output share memory; write to a new tensor", op);
}

}  // namespace

Shape pad2d_output_shape(const Shape& x, const Pad2dOptions& options) {
  const auto [left, right, top, bottom, mode] = options;
  require(x.rank() == 4, "pad2d: needs images of shape N,C,H,W, got {}", to_string(x));
  require(left >= 0 && right >= 0 && top >= 0 && bottom >= 0,
          "pad2d: padding left {}, right {}, top {}, bottom {} must not be negative; use crop2d", left, right, top,
          bottom);
  if (mode == PadMode::reflect) {
    require(std::max(left, right) < std::max<std::int64_t>(x[3], 1) &&
                std::max(top, bottom) < std::max<std::int64_t>(x[2], 1),
            "pad2d: reflecting needs padding smaller than the image, got left {}, right {}, top {}, bottom {} for {}",
            left, right, top, bottom, to_string(x));
  }
  return {x[0], x[1], x[2] + top + bottom, x[3] + left + right};
}

void pad2d(const Tensor& x, const Pad2dOptions& options, const Out& out) {
  check("pad2d", x, options, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"pad2d", out}) return cuda::pad2d(x, options, out);
  if (cpu::pad2d_supports(x, out)) return cpu::pad2d(x, options, out);
  reference::pad2d(x, options, out);
}

void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x) {
  check("pad2d_backward", grad_x, options, grad_out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"pad2d_backward", grad_x}) return cuda::pad2d_backward(grad_out, options, grad_x);
  if (cpu::pad2d_supports(grad_x, grad_out)) return cpu::pad2d_backward(grad_out, options, grad_x);
  reference::pad2d_backward(grad_out, options, grad_x);
}

}  // namespace tandem::kernels
