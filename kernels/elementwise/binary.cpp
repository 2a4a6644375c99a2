// Functions of two tensors: checks and choice of implementation.
#include "tandem/kernels/elementwise/binary.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/binary_functions.h"
#include "tandem/kernels/elementwise/binary_implementations.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

Needs needed_by(Binary function, Side side) {
  return visit_binary(function, [side](auto formulas) {
    return side == Side::left ? decltype(formulas)::kLeftNeeds : decltype(formulas)::kRightNeeds;
  });
}

void binary_forward(std::string_view op, Binary function, const Tensor& a, const Tensor& b, const Out& out) {
  check_elementwise(op, a, out);
  check_elementwise(op, b, out);
  note_traffic(a, b, out);
  if constexpr (kHasCuda)
    if (const CudaOp range{op, out}) return cuda::binary_forward(op, function, a, b, out);
  if (cpu::binary_supports(out)) return cpu::binary_forward(op, function, a, b, out);
  reference::binary_forward(op, function, a, b, out);
}

void binary_backward(std::string_view op, Binary function, Side side, const Tensor& a, const Tensor& b,
                     const Tensor& grad_out, const Out& grad) {
  for (const Tensor* const input : {&a, &b, &grad_out}) check_elementwise(op, *input, grad);
  note_traffic(a, b, grad_out, grad);
  if constexpr (kHasCuda)
    if (const CudaOp range{op, grad}) return cuda::binary_backward(op, function, side, a, b, grad_out, grad);
  if (cpu::binary_supports(grad)) return cpu::binary_backward(op, function, side, a, b, grad_out, grad);
  reference::binary_backward(op, function, side, a, b, grad_out, grad);
}

}  // namespace tandem::kernels
