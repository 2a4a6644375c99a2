// Element-wise product, plain loops.
#include "kernels/elementwise/map.h"
#include "kernels/elementwise/mul.h"

namespace tandem::kernels::reference {

void mul(const Tensor& a, const Tensor& b, const Tensor& out) {
  map("mul", a, b, out, [](auto left, auto right) { return left * right; });
}

}  // namespace tandem::kernels::reference
