// Comparisons on CUDA.
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

/// Chosen while the kernel runs: all threads go the same way.
struct Compare {
  Comparison comparison;

  template <typename T>
  __device__ std::uint8_t operator()(const T& a, const T& b) const {
    const float left = device::to_float(a), right = device::to_float(b);
    return visit_comparison(comparison, [&](auto holds) { return holds(left, right); }) ? 1 : 0;
  }
};

}  // namespace

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  device::dispatch(a.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements(out.shape(), tandem::cuda::current_stream(out), Compare{comparison}, Operand<std::uint8_t>(out),
                 Operand<const T>(ordered_input(a, out)), Operand<const T>(ordered_input(b, out)));
  });
}

}  // namespace tandem::kernels::cuda
