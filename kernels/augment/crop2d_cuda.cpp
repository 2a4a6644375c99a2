// Cropping on CUDA.
#include "kernels/augment/crop2d.h"
#include "kernels/augment/gather_pixels.h"

namespace tandem::kernels::cuda {

void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& out) {
  gather_pixels("crop2d", x, {.top = -top, .left = -left}, out);
}

void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Tensor& grad_x) {
  gather_pixels("crop2d_backward", grad_out, {.top = top, .left = left}, grad_x);
}

}  // namespace tandem::kernels::cuda
