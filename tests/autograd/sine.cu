// Functors for the CPU and for GPUs.
#include "tests/autograd/sine.h"

#include "tandem/autograd/elementwise.cuh"

namespace tandem::test {

namespace {

struct Sine {
  float factor;

  template <typename T>
  __host__ __device__ T operator()(T x) const {
    return sin(static_cast<T>(factor) * x);
  }
};

struct SineGradient {
  float factor;

  template <typename T>
  __host__ __device__ T operator()(T x, T grad) const {
    return grad * static_cast<T>(factor) * cos(static_cast<T>(factor) * x);
  }
};

}  // namespace

Tensor sine(const Tensor& x, float factor) {
  return autograd::elementwise<autograd::OnDevice>("sine", x, Sine{factor}, SineGradient{factor});
}

}  // namespace tandem::test
