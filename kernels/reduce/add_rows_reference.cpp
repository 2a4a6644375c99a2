// Sums of rows, plain loops.
#include "tandem/kernels/reduce/add_rows_implementations.h"

namespace tandem::kernels::reference {

void add_rows(const Tensor& rows, double divisor, const Out& sum) {
  dispatch_floating(rows.dtype(), "add_rows", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const std::int64_t count = rows.size(1);
    for (std::int64_t i = 0; i < count; ++i) {
      const T* const column = rows.data<T>() + i;
      C total = static_cast<C>(column[0]);
      for (std::int64_t row = 1; row < rows.size(0); ++row) total += static_cast<C>(column[row * count]);
      sum.data<T>()[i] = static_cast<T>(total / static_cast<C>(divisor));
    }
  });
}

}  // namespace tandem::kernels::reference
