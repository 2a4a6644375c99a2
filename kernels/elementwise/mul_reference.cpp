// Element-wise product, plain loops.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/mul_implementations.h"

namespace tandem::kernels::reference {

void mul(const Tensor& a, const Tensor& b, const Out& out) {
  map("mul", a, b, out, [](auto left, auto right) { return left * right; });
}

}  // namespace tandem::kernels::reference
