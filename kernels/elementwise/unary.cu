// Functions of one tensor on CUDA: a kernel each for dense operands, one for all that are not.
#include "tandem/kernels/elementwise/device_math.cuh"
#include "tandem/kernels/elementwise/map.cuh"
#include "tandem/kernels/elementwise/unary_functions.h"
#include "tandem/kernels/elementwise/unary_implementations.h"

namespace tandem::kernels::cuda {

namespace {

template <typename Formulas>
struct Value {
  NumbersIn<float> numbers;

  __device__ float operator()(float x) const { return Formulas::template value<DeviceMath>(x, numbers); }
};

template <typename Formulas>
struct Gradient {
  NumbersIn<float> numbers;

  __device__ float operator()(float kept, float grad) const {
    return Formulas::template gradient<DeviceMath>(kept, grad, numbers);
  }
};

/// Any of them, chosen while the kernel runs: all threads go the same way.
template <template <typename> typename Which>
struct Any {
  Unary function;
  NumbersIn<float> numbers;

  template <typename... In>
  __device__ float operator()(In... in) const {
    return visit_unary(function, [&](auto formulas) { return Which<decltype(formulas)>{numbers}(in...); });
  }
};

}  // namespace

void unary_forward(std::string_view op, Unary function, const Tensor& x, const Numbers& numbers, const Out& y) {
  const NumbersIn<float> floats(numbers);
  visit_unary(function, [&](auto formulas) {
    map_by(op, Value<decltype(formulas)>{floats}, Any<Value>{function, floats}, y, x);
  });
}

void unary_backward(std::string_view op, Unary function, const Tensor& kept, const Tensor& grad_y,
                    const Numbers& numbers, const Out& grad_x) {
  const NumbersIn<float> floats(numbers);
  visit_unary(function, [&](auto formulas) {
    map_by(op, Gradient<decltype(formulas)>{floats}, Any<Gradient>{function, floats}, grad_x, kept, grad_y);
  });
}

}  // namespace tandem::kernels::cuda
