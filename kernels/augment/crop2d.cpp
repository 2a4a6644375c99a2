// Cropping: checks and choice of implementation.
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/crop2d_implementations.h"
#include "tandem/kernels/cuda_choice.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& image, std::int64_t top, std::int64_t left, const Tensor& window) {
  require(image.defined() && window.defined(), "{}: needs defined tensors, got {} and {}", op, describe(image),
          describe(window));
  require(image.rank() == 4 && window.rank() == 4, "{}: needs images of shape N,C,H,W, got {} and {}", op,
          describe(image), describe(window));
  require(is_floating(image.dtype()) && image.dtype() == window.dtype() && image.device() == window.device(),
          "{}: {} on {} and {} on {} must have one floating dtype and one device", op, describe(image),
          name_of(image.device()), describe(window), name_of(window.device()));
  const bool fits = image.size(0) == window.size(0) && image.size(1) == window.size(1) && top >= 0 && left >= 0 &&
                    top <= image.size(2) - window.size(2) && left <= image.size(3) - window.size(3);
  require(fits, "{}: window {} at row {}, column {} leaves the images {}", op, describe(window), top, left,
          describe(image));
  require(image.storage() != window.storage(), "{}: input and output share memory; write to a new tensor", op);
}

}  // namespace

void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Out& out) {
  check("crop2d", x, top, left, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"crop2d", out}) return cuda::crop2d(x, top, left, out);
  if (cpu::crop2d_supports(out)) return cpu::crop2d(x, top, left, out);
  reference::crop2d(x, top, left, out);
}

void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Out& grad_x) {
  check("crop2d_backward", grad_x, top, left, grad_out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"crop2d_backward", grad_x}) return cuda::crop2d_backward(grad_out, top, left, grad_x);
  if (cpu::crop2d_supports(grad_x)) return cpu::crop2d_backward(grad_out, top, left, grad_x);
  reference::crop2d_backward(grad_out, top, left, grad_x);
}

}  // namespace tandem::kernels
