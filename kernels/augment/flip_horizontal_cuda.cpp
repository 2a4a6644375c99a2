// Mirroring on CUDA.
#include "tandem/kernels/augment/flip_horizontal_implementations.h"
#include "tandem/kernels/augment/gather_pixels.h"

namespace tandem::kernels::cuda {

void flip_horizontal(const Tensor& x, const Out& out) { gather_pixels("flip_horizontal", x, {.flip = true}, out); }

}  // namespace tandem::kernels::cuda
