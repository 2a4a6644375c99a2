// Product with a number on CUDA.
#include "tandem/kernels/elementwise/map.cuh"
#include "tandem/kernels/elementwise/scale_implementations.h"

namespace tandem::kernels::cuda {

namespace {

struct Scale {
  float factor;

  __device__ float operator()(float value) const { return value * factor; }
};

}  // namespace

void scale(const Tensor& a, double factor, const Out& out) { map("scale", Scale{static_cast<float>(factor)}, out, a); }

}  // namespace tandem::kernels::cuda
