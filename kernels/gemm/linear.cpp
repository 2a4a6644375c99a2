// linear: checks, and the choice between the fast and the reference path.
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"

#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/gemm/product_work.h"

#include <string_view>

namespace tandem::kernels {
namespace {

/// Throws unless `tensor` is undefined (where that is allowed) or dense, row-major, of this shape and dtype.
void check(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype,
           bool optional) {
  if (!tensor.defined()) {
    require(optional, "{}: {} is undefined", op, name);
    return;
  }
  require(tensor.shape() == shape, "{}: {} should have shape {}, got {}", op, name, to_string(shape), describe(tensor));
  require(tensor.dtype() == dtype, "{}: {} should be {}, like x, got {}", op, name, name_of(dtype), describe(tensor));
  require(tensor.is_dense(Layout::row_major), "{}: {} {} is not dense; pass contiguous()", op, name, describe(tensor));
}

void check_operands(std::string_view op, const Tensor& x, const Tensor& weight) {
  require(x.defined() && weight.defined(), "{}: x or weight is undefined", op);
  require(x.rank() == 2 && weight.rank() == 2 && x.size(1) == weight.size(1),
          "{}: needs x [M, I] and weight [O, I], got x {}, weight {}", op, describe(x), describe(weight));
  check(op, "x", x, x.shape(), x.dtype(), false);
  check(op, "weight", weight, weight.shape(), x.dtype(), false);
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y, GemmImpl impl) {
  constexpr std::string_view kOp = "linear_forward";
  check_operands(kOp, x, weight);
  check(kOp, "bias", bias, {weight.size(0)}, x.dtype(), true);
  check(kOp, "y", y, {x.size(0), weight.size(0)}, x.dtype(), false);
  require_one_device(kOp, y, x, weight, bias);
  require_possible(kOp, impl, y.device());
  note_products(1, x.size(0), weight.size(0), x.size(1), x.dtype());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) return cuda::linear_forward(x, weight, bias, relu, y, impl);
  if (cpu::supports_linear(x)) return cpu::linear_forward(x, weight, bias, relu, y);
  reference::linear_forward(x, weight, bias, relu, y);
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias, GemmImpl impl) {
  constexpr std::string_view kOp = "linear_backward";
  check_operands(kOp, x, weight);
  const Shape y_shape{x.size(0), weight.size(0)};
  check(kOp, "y", y, y_shape, x.dtype(), true);
  check(kOp, "grad_y", grad_y, y_shape, x.dtype(), false);
  check(kOp, "grad_x", grad_x, x.shape(), x.dtype(), true);
  check(kOp, "grad_weight", grad_weight, weight.shape(), x.dtype(), true);
  check(kOp, "grad_bias", grad_bias, {weight.size(0)}, x.dtype(), true);
  require_one_device(kOp, x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
  require_possible(kOp, impl, x.device());
  note_products((grad_x.defined() ? 1 : 0) + (grad_weight.defined() ? 1 : 0), x.size(0), weight.size(0), x.size(1),
                x.dtype());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, x})
      return cuda::linear_backward(x, weight, y, grad_y, grad_x, grad_weight, grad_bias, impl);
  if (cpu::supports_linear(x)) return cpu::linear_backward(x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
  reference::linear_backward(x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
}

}  // namespace tandem::kernels
