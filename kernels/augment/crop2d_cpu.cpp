// Cropping on the CPU.
#include "tandem/kernels/augment/crop2d_implementations.h"

namespace tandem::kernels::cpu {

namespace {

Tensor window_of(const Tensor& image, std::int64_t top, std::int64_t left, const Shape& window) {
  return image.narrow(2, top, window[2]).narrow(3, left, window[3]);
}

}  // namespace

bool crop2d_supports(const Tensor& out) { return out.device().type == DeviceType::cpu; }

void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Out& out) {
  out.copy_from(window_of(x, top, left, out.shape()));
}

void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Out& grad_x) {
  grad_x.zero();
  window_of(grad_x, top, left, grad_out.shape()).copy_from(grad_out);
}

}  // namespace tandem::kernels::cpu
