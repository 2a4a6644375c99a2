// Choice between two tensors: checks and choice of implementation.
#include "tandem/kernels/elementwise/where.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/where_implementations.h"

namespace tandem::kernels {

namespace {

void check_condition(const Tensor& condition, const Tensor& out) {
  require(condition.defined() && condition.dtype() == DType::u8 && condition.shape() == out.shape() &&
              condition.device() == out.device(),
          "where: the condition must be u8{} on {} (0 or not), got {}", to_string(out.shape()), name_of(out.device()),
          condition);
}

}  // namespace

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Out& out) {
  check_same_elements("where", a, out);
  check_same_elements("where", b, out);
  check_condition(condition, out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"where", out}) return cuda::where(condition, a, b, out);
  cpu::where(condition, a, b, out);
}

void where_backward(const Tensor& condition, bool chosen, const Tensor& grad_out, const Out& grad) {
  check_elementwise("where_backward", grad_out, grad);
  check_condition(condition, grad);
  if constexpr (kHasCuda)
    if (const CudaOp op{"where_backward", grad}) return cuda::where_backward(condition, chosen, grad_out, grad);
  cpu::where_backward(condition, chosen, grad_out, grad);
}

}  // namespace tandem::kernels
