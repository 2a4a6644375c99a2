// Comparisons on CUDA.
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

#include <type_traits>

namespace tandem::kernels::cuda {

namespace {

/// Chosen while the kernel runs: all threads go the same way.
struct Compare {
  Comparison comparison;

  template <typename T>
  __device__ std::uint8_t operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T>) {
      return holds(a, b);
    } else {
      return holds(device::to_float(a), device::to_float(b));
    }
  }

  template <typename T>
  __device__ std::uint8_t holds(T a, T b) const {
    return visit_comparison(comparison, [&](auto is_true) { return is_true(a, b); }) ? 1 : 0;
  }
};

}  // namespace

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  device::dispatch_with_integers(a.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements(out.shape(), tandem::cuda::current_stream(out), Compare{comparison}, Operand<std::uint8_t>(out),
                 Operand<const T>(ordered_input(a, out)), Operand<const T>(ordered_input(b, out)));
  });
}

}  // namespace tandem::kernels::cuda
