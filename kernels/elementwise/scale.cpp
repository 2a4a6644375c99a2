// Product with a number: checks and choice of implementation.
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/scale_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void scale(const Tensor& a, double factor, const Out& out) {
  check_elementwise("scale", a, out);
  note_traffic(a, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"scale", out}) return cuda::scale(a, factor, out);
  if (cpu::scale_supports(out)) return cpu::scale(a, factor, out);
  reference::scale(a, factor, out);
}

}  // namespace tandem::kernels
