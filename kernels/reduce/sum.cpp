// Sum and mean: checks and choice of implementation.
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/reduce/sum_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& x, const Tensor& out) {
  require(x.defined() && out.defined(), "{}: needs defined tensors, got {} and {}", op, describe(x), describe(out));
  require(is_floating(x.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}; use cast", op,
          describe(x));
  require(out.rank() == 0 && out.dtype() == x.dtype() && out.device() == x.device(),
          "{}: the output for {} must be {}[] on {}, got {}", op, describe(x), name_of(x.dtype()), name_of(x.device()),
          describe(out));
}

}  // namespace

void sum(const Tensor& x, const Out& out) {
  check("sum", x, out);
  note_traffic(x, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"sum", out}) return cuda::sum(x, out);
  if (cpu::sum_supports(x)) return cpu::sum(x, out);
  reference::sum(x, out);
}

void mean(const Tensor& x, const Out& out) {
  check("mean", x, out);
  note_traffic(x, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"mean", out}) return cuda::mean(x, out);
  if (cpu::sum_supports(x)) return cpu::mean(x, out);
  reference::mean(x, out);
}

}  // namespace tandem::kernels
