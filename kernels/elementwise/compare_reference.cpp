// Comparisons, plain loops.
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/plain_loop.h"

namespace tandem::kernels::reference {

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  dispatch_all(a.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    visit_comparison(comparison, [&](auto holds) {
      for (std::int64_t i = 0; i < out.numel(); ++i) {
        const C left = static_cast<C>(a.data<T>()[offset_of(i, a.shape(), a.strides())]);
        const C right = static_cast<C>(b.data<T>()[offset_of(i, b.shape(), b.strides())]);
        out.data<std::uint8_t>()[offset_of(i, out.shape(), out.strides())] = holds(left, right);
      }
    });
  });
}

}  // namespace tandem::kernels::reference
