// Element-wise sum: checks and choice of implementation.
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void add(const Tensor& a, const Tensor& b, const Out& out) {
  check_elementwise("add", a, out);
  check_elementwise("add", b, out);
  note_traffic(a, b, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"add", out}) return cuda::add(a, b, out);
  if (cpu::add_supports(out)) return cpu::add(a, b, out);
  reference::add(a, b, out);
}

}  // namespace tandem::kernels
