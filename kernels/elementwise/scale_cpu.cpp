// Product with a number on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/scale_implementations.h"

namespace tandem::kernels::cpu {

bool scale_supports(const Tensor& out) { return map_supports(out); }

void scale(const Tensor& a, double factor, const Out& out) {
  map(a, out, [factor = static_cast<float>(factor)](float value) { return value * factor; });
}

}  // namespace tandem::kernels::cpu
