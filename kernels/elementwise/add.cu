// Element-wise sum on CUDA.
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

struct Sum {
  __device__ float operator()(float left, float right) const { return left + right; }
};

}  // namespace

void add(const Tensor& a, const Tensor& b, const Tensor& out) { map("add", Sum{}, out, a, b); }

}  // namespace tandem::kernels::cuda
