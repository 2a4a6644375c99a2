// Product with a number on the CPU, vectorised and threaded.
#include "kernels/elementwise/map.h"
#include "kernels/elementwise/scale.h"

namespace tandem::kernels::cpu {

bool scale_supports(const Tensor& out) { return map_supports(out); }

void scale(const Tensor& a, double factor, const Tensor& out) {
  map(a, out, [factor = static_cast<float>(factor)](float value) { return value * factor; });
}

}  // namespace tandem::kernels::cpu
