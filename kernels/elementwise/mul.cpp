// Element-wise product: checks and choice of implementation.
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/mul_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void mul(const Tensor& a, const Tensor& b, const Out& out) {
  check_elementwise("mul", a, out);
  check_elementwise("mul", b, out);
  note_traffic(a, b, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"mul", out}) return cuda::mul(a, b, out);
  if (cpu::mul_supports(out)) return cpu::mul(a, b, out);
  reference::mul(a, b, out);
}

}  // namespace tandem::kernels
