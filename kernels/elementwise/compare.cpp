// Comparisons: checks and choice of implementation.
#include "tandem/kernels/elementwise/compare.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels {

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  require(a.defined() && b.defined() && out.defined(), "{}: needs defined tensors, got {}, {} and {}", op, a, b,
          out.tensor());
  require(a.shape() == b.shape() && a.dtype() == b.dtype() && a.device() == b.device(),
          "{}: {} on {} and {} on {} differ; shapes, dtypes and devices must agree", op, a, name_of(a.device()), b,
          name_of(b.device()));
  require(out.dtype() == DType::u8 && out.shape() == a.shape() && out.device() == a.device() && out.is_dense(),
          "{}: the output for {} on {} must be dense u8 of its shape there, got {} on {}", op, a, name_of(a.device()),
          out.tensor(), name_of(out.device()));
  check_overlap(op, a, out);
  check_overlap(op, b, out);
  if constexpr (kHasCuda)
    if (const CudaOp range{op, out}) return cuda::compare(op, comparison, a, b, out);
  cpu::compare(op, comparison, a, b, out);
}

}  // namespace tandem::kernels
