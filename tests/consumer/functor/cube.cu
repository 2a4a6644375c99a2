// An element-wise function of one's own, with functors for the CPU and for GPUs: factor x^3, and its gradient. Prints
// where it was right.
#include <tandem/tandem.h>
#include <tandem/autograd/elementwise.cuh>

#include <cmath>
using namespace tandem;

struct Cube {
  float factor;
  template <typename T>
  __host__ __device__ T operator()(T x) const {
    return static_cast<T>(factor) * x * x * x;
  }
};

struct CubeGradient {
  float factor;
  template <typename T>
  __host__ __device__ T operator()(T x, T grad) const {
    return grad * static_cast<T>(3 * factor) * x * x;
  }
};

static bool is_right(Device device, DType dtype) {
  const Tensor numbers = Tensor::from<float>({-2, -0.5f, 0, 1, 3, 1.5f}, {2, 3});
  const Tensor x = autograd::set_requires_grad(autograd::cast(numbers, dtype).to(device).detach());
  const Tensor y = autograd::elementwise<autograd::OnDevice>("cube", x, Cube{0.5f}, CubeGradient{0.5f});
  autograd::backward(y, Tensor::full({2, 3}, 2.0, y.options()));
  // All of these numbers are exact in every dtype.
  return y.device() == device && y.to_vector<float>() == std::vector<float>{-4, -0.0625f, 0, 0.5f, 13.5f, 1.6875f} &&
         autograd::grad(x).to_vector<float>() == std::vector<float>{12, 0.75f, 0, 3, 27, 6.75f};
}

int main() {
  std::vector<Device> devices{Device{}};
  if (cuda_device_count() > 0) devices.push_back({DeviceType::cuda});
  for (const Device device : devices) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      if (!is_right(device, dtype)) return fmt::print("wrong on {} in {}\n", name_of(device), name_of(dtype)), 1;
    }
    fmt::print("right on {}\n", name_of(device));
  }
}
