// Product with a number: checks and choice of implementation.
#include "kernels/elementwise/scale.h"
#include "kernels/cuda_choice.h"
#include "kernels/elementwise/map.h"
#include "kernels/written.h"

namespace tandem::kernels {

void scale(const Tensor& a, double factor, const Tensor& out) {
  check_elementwise("scale", a, out);
  mark_written("scale", out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"scale", out}) return cuda::scale(a, factor, out);
  if (cpu::scale_supports(out)) return cpu::scale(a, factor, out);
  reference::scale(a, factor, out);
}

}  // namespace tandem::kernels
