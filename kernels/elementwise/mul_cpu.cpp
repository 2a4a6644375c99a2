// Element-wise product on the CPU, vectorised and threaded.
#include "kernels/elementwise/map.h"
#include "kernels/elementwise/mul.h"

namespace tandem::kernels::cpu {

bool mul_supports(const Tensor& out) { return map_supports(out); }

void mul(const Tensor& a, const Tensor& b, const Tensor& out) {
  map(a, b, out, [](float left, float right) { return left * right; });
}

}  // namespace tandem::kernels::cpu
