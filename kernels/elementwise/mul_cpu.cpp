// Element-wise product on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/mul_implementations.h"

namespace tandem::kernels::cpu {

bool mul_supports(const Tensor& out) { return map_supports(out); }

void mul(const Tensor& a, const Tensor& b, const Out& out) {
  map(a, b, out, [](float left, float right) { return left * right; });
}

}  // namespace tandem::kernels::cpu
