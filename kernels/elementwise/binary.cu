// Functions of two tensors on CUDA: a kernel each for dense operands, one for all that are not.
#include "tandem/kernels/elementwise/binary_functions.h"
#include "tandem/kernels/elementwise/binary_implementations.h"
#include "tandem/kernels/elementwise/device_math.cuh"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

template <typename Formulas>
struct Value {
  __device__ float operator()(float a, float b) const { return Formulas::template value<DeviceMath>(a, b); }
};

template <typename Formulas>
struct Left {
  __device__ float operator()(float a, float b, float grad) const {
    return Formulas::template left<DeviceMath>(a, b, grad);
  }
};

template <typename Formulas>
struct Right {
  __device__ float operator()(float a, float b, float grad) const {
    return Formulas::template right<DeviceMath>(a, b, grad);
  }
};

/// Any of them, chosen while the kernel runs: all threads go the same way.
template <template <typename> typename Which>
struct Any {
  Binary function;

  template <typename... In>
  __device__ float operator()(In... in) const {
    return visit_binary(function, [&](auto formulas) { return Which<decltype(formulas)>{}(in...); });
  }
};

}  // namespace

void binary_forward(std::string_view op, Binary function, const Tensor& a, const Tensor& b, const Out& out) {
  visit_binary(function,
               [&](auto formulas) { map_by(op, Value<decltype(formulas)>{}, Any<Value>{function}, out, a, b); });
}

void binary_backward(std::string_view op, Binary function, Side side, const Tensor& a, const Tensor& b,
                     const Tensor& grad_out, const Out& grad) {
  visit_binary(function, [&](auto formulas) {
    if (side == Side::left) return map_by(op, Left<decltype(formulas)>{}, Any<Left>{function}, grad, a, b, grad_out);
    map_by(op, Right<decltype(formulas)>{}, Any<Right>{function}, grad, a, b, grad_out);
  });
}

}  // namespace tandem::kernels::cuda
