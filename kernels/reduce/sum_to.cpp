// Sum over broadcast dimensions: checks and choice of implementation.
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void sum_to(const Tensor& x, const Out& out) {
  require(x.defined() && out.defined(), "sum_to: needs defined tensors, got {} and {}", describe(x), describe(out));
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::i64;
  require(out.dtype() == dtype && out.device() == x.device(),
          "sum_to: the output for {} on {} must be {} there, got {} on {}", describe(x), name_of(x.device()),
          name_of(dtype), describe(out), name_of(out.device()));
  require(out.is_dense(), "sum_to: output {} with strides {} must be dense", describe(out), to_string(out.strides()));
  bool fits = out.rank() <= x.rank();
  for (int dim = 1; fits && dim <= out.rank(); ++dim) fits = out.size(-dim) == x.size(-dim) || out.size(-dim) == 1;
  require(fits, "sum_to: output {} does not expand to input {}", describe(out), describe(x));
  note_traffic(x, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"sum_to", out}) return cuda::sum_to(x, out);
  if (cpu::sum_to_supports(x)) return cpu::sum_to(x, out);
  reference::sum_to(x, out);
}

}  // namespace tandem::kernels
