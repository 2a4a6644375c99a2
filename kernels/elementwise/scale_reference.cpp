// Product with a number, plain loops.
#include "kernels/elementwise/map.h"
#include "kernels/elementwise/scale.h"

namespace tandem::kernels::reference {

void scale(const Tensor& a, double factor, const Tensor& out) {
  map("scale", a, out, [factor](auto value) { return value * static_cast<decltype(value)>(factor); });
}

}  // namespace tandem::kernels::reference
