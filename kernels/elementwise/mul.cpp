// Element-wise product: checks and choice of implementation.
#include "kernels/elementwise/mul.h"
#include "kernels/cuda_choice.h"
#include "kernels/elementwise/map.h"
#include "kernels/written.h"

namespace tandem::kernels {

void mul(const Tensor& a, const Tensor& b, const Tensor& out) {
  check_elementwise("mul", a, out);
  check_elementwise("mul", b, out);
  mark_written("mul", out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"mul", out}) return cuda::mul(a, b, out);
  if (cpu::mul_supports(out)) return cpu::mul(a, b, out);
  reference::mul(a, b, out);
}

}  // namespace tandem::kernels
