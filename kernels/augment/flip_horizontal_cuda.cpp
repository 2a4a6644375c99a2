// Mirroring on CUDA.
#include "kernels/augment/flip_horizontal.h"
#include "kernels/augment/gather_pixels.h"

namespace tandem::kernels::cuda {

void flip_horizontal(const Tensor& x, const Tensor& out) { gather_pixels("flip_horizontal", x, {.flip = true}, out); }

}  // namespace tandem::kernels::cuda
