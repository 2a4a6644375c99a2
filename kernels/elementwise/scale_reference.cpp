// Product with a number, plain loops.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/scale_implementations.h"

namespace tandem::kernels::reference {

void scale(const Tensor& a, double factor, const Out& out) {
  map("scale", a, out, [factor](auto value) { return value * static_cast<decltype(value)>(factor); });
}

}  // namespace tandem::kernels::reference
