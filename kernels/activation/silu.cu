// SiLU on CUDA.
#include "tandem/kernels/activation/device_activations.cuh"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

using activations::Silu;

void silu_forward(const Tensor& x, const Out& y) { map("silu_forward", ValueOf<Silu>{}, y, x); }

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("silu_backward", GradientOf<Silu>{}, grad_x, x, grad_y);
}

}  // namespace tandem::kernels::cuda
