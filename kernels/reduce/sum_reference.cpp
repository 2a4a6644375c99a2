// Sum and mean, plain loops.
#include "tandem/kernels/elementwise/plain_loop.h"
#include "tandem/kernels/reduce/sum_implementations.h"

namespace tandem::kernels::reference {

namespace {

double total(const Tensor& x) {
  return dispatch_floating(x.dtype(), "sum", [&](auto tag) {
    using T = typename decltype(tag)::type;
    double result = 0.0;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      result += static_cast<double>(static_cast<compute_t<T>>(x.data<T>()[offset_of(i, x.shape(), x.strides())]));
    }
    return result;
  });
}

}  // namespace

void sum(const Tensor& x, const Out& out) { out.fill(total(x)); }

void mean(const Tensor& x, const Out& out) { out.fill(total(x) / static_cast<double>(x.numel())); }

}  // namespace tandem::kernels::reference
