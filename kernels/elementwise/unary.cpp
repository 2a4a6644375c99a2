// Functions of one tensor: checks and choice of implementation.
#include "tandem/kernels/elementwise/unary.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/unary_functions.h"
#include "tandem/kernels/elementwise/unary_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

Keep kept_by(Unary function) {
  return visit_unary(function, [](auto formulas) { return decltype(formulas)::kKeep; });
}

void unary_forward(std::string_view op, Unary function, const Tensor& x, const Numbers& numbers, const Out& y) {
  check_elementwise(op, x, y);
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp range{op, y}) return cuda::unary_forward(op, function, x, numbers, y);
  if (cpu::unary_supports(y)) return cpu::unary_forward(op, function, x, numbers, y);
  reference::unary_forward(op, function, x, numbers, y);
}

void unary_backward(std::string_view op, Unary function, const Tensor& kept, const Tensor& grad_y,
                    const Numbers& numbers, const Out& grad_x) {
  check_elementwise(op, kept, grad_x);
  check_elementwise(op, grad_y, grad_x);
  note_traffic(kept, grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp range{op, grad_x}) return cuda::unary_backward(op, function, kept, grad_y, numbers, grad_x);
  if (cpu::unary_supports(grad_x)) return cpu::unary_backward(op, function, kept, grad_y, numbers, grad_x);
  reference::unary_backward(op, function, kept, grad_y, numbers, grad_x);
}

}  // namespace tandem::kernels
