// Cropping on CUDA.
#include "tandem/kernels/augment/crop2d_implementations.h"
#include "tandem/kernels/augment/gather_pixels.h"

namespace tandem::kernels::cuda {

void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Out& out) {
  gather_pixels("crop2d", x, {.top = -top, .left = -left}, out);
}

void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Out& grad_x) {
  gather_pixels("crop2d_backward", grad_out, {.top = top, .left = left}, grad_x);
}

}  // namespace tandem::kernels::cuda
