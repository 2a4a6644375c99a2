// GELU on CUDA.
#include "tandem/kernels/activation/device_activations.cuh"
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

using activations::Gelu;

void gelu_forward(const Tensor& x, const Out& y) { map("gelu_forward", ValueOf<Gelu>{}, y, x); }

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("gelu_backward", GradientOf<Gelu>{}, grad_x, x, grad_y);
}

}  // namespace tandem::kernels::cuda
