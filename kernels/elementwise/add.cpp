// Element-wise sum: checks and choice of implementation.
#include "kernels/elementwise/add.h"
#include "kernels/cuda_choice.h"
#include "kernels/elementwise/map.h"
#include "kernels/written.h"

namespace tandem::kernels {

void add(const Tensor& a, const Tensor& b, const Tensor& out) {
  check_elementwise("add", a, out);
  check_elementwise("add", b, out);
  mark_written("add", out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"add", out}) return cuda::add(a, b, out);
  if (cpu::add_supports(out)) return cpu::add(a, b, out);
  reference::add(a, b, out);
}

}  // namespace tandem::kernels
