// Choice between two tensors on CUDA.
#include "tandem/kernels/elementwise/map.cuh"
#include "tandem/kernels/elementwise/where_implementations.h"

namespace tandem::kernels::cuda {

namespace {

struct Choose {
  template <typename T>
  __device__ T operator()(std::uint8_t condition, const T& a, const T& b) const {
    return condition != 0 ? a : b;
  }
};

struct KeepIf {
  bool chosen;

  template <typename T>
  __device__ T operator()(std::uint8_t condition, const T& grad) const {
    return (condition != 0) == chosen ? grad : T{};
  }
};

}  // namespace

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Out& out) {
  device::dispatch_with_integers(out.dtype(), "where", [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements(out.shape(), tandem::cuda::current_stream(out), Choose{}, Operand<T>(out),
                 Operand<const std::uint8_t>(ordered_input(condition, out)), Operand<const T>(ordered_input(a, out)),
                 Operand<const T>(ordered_input(b, out)));
  });
}

void where_backward(const Tensor& condition, bool chosen, const Tensor& grad_out, const Out& grad) {
  device::dispatch(grad.dtype(), "where_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements(grad.shape(), tandem::cuda::current_stream(grad), KeepIf{chosen}, Operand<T>(grad),
                 Operand<const std::uint8_t>(ordered_input(condition, grad)),
                 Operand<const T>(ordered_input(grad_out, grad)));
  });
}

}  // namespace tandem::kernels::cuda
