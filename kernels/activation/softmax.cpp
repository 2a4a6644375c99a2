// Softmax: checks, and the choice of implementation.
#include "tandem/kernels/activation/softmax.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/activation/softmax_implementations.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/cuda_choice.h"

namespace tandem::kernels {

namespace {

void check_matrix(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& model) {
  require(model.rank() == 2 && is_floating(tensor.dtype()) && tensor.shape() == model.shape() &&
              tensor.is_dense(Layout::row_major),
          "{}: {} must be floating, dense row-major and of one shape [R, C], got {} beside {}", op, what, tensor,
          model);
}

}  // namespace

DType softmax_dtype(DType x_dtype) { return x_dtype == DType::f64 ? DType::f64 : DType::f32; }

void softmax_forward(SoftmaxResult result, const Tensor& x, const Out& y) {
  constexpr std::string_view kOp = "softmax_forward";
  check_matrix(kOp, "the input", x, x);
  check_matrix(kOp, "the output", y, x);
  require(y.dtype() == softmax_dtype(x.dtype()), "{}: the output for {} must be {}, got {}", kOp, x,
          softmax_dtype(x.dtype()), y.tensor());
  require_one_device(kOp, x, y);
  if (x.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, y}) return cuda::softmax_forward(result, x, y);
  if (cpu::computes_in_float(x.dtype())) return cpu::softmax_forward(result, x, y);
  reference::softmax_forward(result, x, y);
}

void softmax_backward(SoftmaxResult result, const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  constexpr std::string_view kOp = "softmax_backward";
  check_matrix(kOp, "the output", y, y);
  check_matrix(kOp, "its gradient", grad_y, y);
  check_matrix(kOp, "the input's gradient", grad_x, y);
  require(y.dtype() == grad_y.dtype() && y.dtype() == softmax_dtype(grad_x.dtype()),
          "{}: the gradient {} needs an output and its gradient of {}, got {} and {}", kOp, grad_x.tensor(),
          softmax_dtype(grad_x.dtype()), y, grad_y);
  require_one_device(kOp, y, grad_y, grad_x);
  if (y.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, grad_x}) return cuda::softmax_backward(result, y, grad_y, grad_x);
  if (cpu::computes_in_float(grad_x.dtype())) return cpu::softmax_backward(result, y, grad_y, grad_x);
  reference::softmax_backward(result, y, grad_y, grad_x);
}

}  // namespace tandem::kernels
