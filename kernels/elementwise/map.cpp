// Checks of the element-wise kernels.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/core/describe.h"

namespace tandem::kernels {

void check_same_elements(std::string_view op, const Tensor& input, const Tensor& out) {
  require(input.defined() && out.defined(), "{}: needs defined tensors, got {} and {}", op, input, out);
  require(input.shape() == out.shape() && input.dtype() == out.dtype() && input.device() == out.device(),
          "{}: input {} on {} does not fit output {} on {}; shapes, dtypes and devices must agree", op, input,
          name_of(input.device()), out, name_of(out.device()));
  require(out.is_dense(), "{}: output {} with strides {} must be dense", op, out, out.strides());
  check_overlap(op, input, out);
}

void check_overlap(std::string_view op, const Tensor& input, const Tensor& out) {
  if (input.storage() != out.storage()) return;
  require(input.offset() == out.offset() && input.strides() == out.strides(),
          "{}: input and output {} overlap without being the same elements", op, out);
}

void check_elementwise(std::string_view op, const Tensor& input, const Tensor& out) {
  check_same_elements(op, input, out);
  require(is_floating(out.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}; use cast", op, out);
}

bool map_supports(const Tensor& out) {
  return cpu::computes_in_float(out.dtype()) && out.device().type == DeviceType::cpu;
}

}  // namespace tandem::kernels
