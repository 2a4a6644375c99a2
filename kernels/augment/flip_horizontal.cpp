// Mirroring: checks and choice of implementation.
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/flip_horizontal_implementations.h"
#include "tandem/kernels/cuda_choice.h"

namespace tandem::kernels {

void flip_horizontal(const Tensor& x, const Out& out) {
  require(x.defined() && out.defined(), "flip_horizontal: needs defined tensors, got {} and {}", describe(x),
          describe(out));
  require(x.rank() == 4, "flip_horizontal: needs images of shape N,C,H,W, got {}", describe(x));
  require(is_floating(x.dtype()) && x.dtype() == out.dtype() && x.shape() == out.shape() && x.device() == out.device(),
          "flip_horizontal: {} on {} and {} on {} must have one shape, one floating dtype and one device", describe(x),
          name_of(x.device()), describe(out), name_of(out.device()));
  require(x.storage() != out.tensor().storage(),
          "flip_horizontal: input and output share memory; write to a new tensor");
  if constexpr (kHasCuda)
    if (const CudaOp op{"flip_horizontal", out}) return cuda::flip_horizontal(x, out);
  if (cpu::flip_horizontal_supports(x, out)) return cpu::flip_horizontal(x, out);
  reference::flip_horizontal(x, out);
}

}  // namespace tandem::kernels
