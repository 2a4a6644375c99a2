// Element-wise sum on CUDA.
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

struct Sum {
  __device__ float operator()(float left, float right) const { return left + right; }
};

}  // namespace

void add(const Tensor& a, const Tensor& b, const Out& out) { map("add", Sum{}, out, a, b); }

}  // namespace tandem::kernels::cuda
