// Normalisation of rows: checks, and the choice of implementation.
#include "tandem/kernels/norm/row_norm.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/norm/row_norm_implementations.h"

namespace tandem::kernels {

namespace {

void check_matrix(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x) {
  require(x.rank() == 2 && is_floating(x.dtype()) && tensor.dtype() == x.dtype() && tensor.shape() == x.shape() &&
              tensor.is_dense(Layout::row_major),
          "{}: {} must be dense row-major, floating and [R, C] as the input, got {} beside {}", op, what, tensor, x);
}

void check_options(std::string_view op, const Tensor& x, const RowNormOptions& options) {
  require(options.eps >= 0.0, "{}: eps must not be negative, got {}", op, options.eps);
  require(options.groups >= 1 && options.repeats >= 1 && x.size(0) % options.groups == 0 &&
              x.size(1) % options.repeats == 0,
          "{}: rows in groups of {} and columns in groups of {} do not divide {}", op, options.groups, options.repeats,
          x);
}

void check_parameter(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x,
                     const RowNormOptions& options) {
  const std::int64_t count = options.groups * (x.size(1) / options.repeats);
  require(!tensor.defined() || (is_floating(tensor.dtype()) && tensor.shape() == Shape{count}),
          "{}: {} of rows {} must have a floating dtype and shape [{}], got {}", op, what, x, count, tensor);
}

void check_statistics(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x) {
  require(tensor.dtype() == row_norm_statistics_dtype(x.dtype()) && tensor.shape() == Shape{x.size(0)} &&
              tensor.is_dense(Layout::row_major),
          "{}: {} of rows {} must be dense {}[{}], got {}", op, what, x, row_norm_statistics_dtype(x.dtype()),
          x.size(0), tensor);
}

}  // namespace

DType row_norm_statistics_dtype(DType x_dtype) { return x_dtype == DType::f64 ? DType::f64 : DType::f32; }

void row_norm_forward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const RowNormOptions& options, const Out& y, const Out& mean, const Out& inverse_std) {
  check_matrix(op, "the input", x, x);
  check_matrix(op, "the output", y, x);
  check_options(op, x, options);
  check_parameter(op, "weight", weight, x, options);
  check_parameter(op, "bias", bias, x, options);
  check_statistics(op, "mean", mean, x);
  check_statistics(op, "inverse deviation", inverse_std, x);
  require_one_device(op, x, weight, bias, y, mean, inverse_std);
  if (x.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp range{op, y}) return cuda::row_norm_forward(op, x, weight, bias, options, y, mean, inverse_std);
  const auto run = cpu::computes_in_float(x.dtype()) ? cpu::row_norm_forward : reference::row_norm_forward;
  run(op, x, weight, bias, options, y, mean, inverse_std);
}

void row_norm_backward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_std, const RowNormOptions& options, const Tensor& grad_y,
                       const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  check_matrix(op, "the input", x, x);
  check_matrix(op, "the output's gradient", grad_y, x);
  if (grad_x.defined()) check_matrix(op, "the input's gradient", grad_x, x);
  check_options(op, x, options);
  check_parameter(op, "weight", weight, x, options);
  check_parameter(op, "gradient of weight", grad_weight, x, options);
  check_parameter(op, "gradient of bias", grad_bias, x, options);
  check_statistics(op, "mean", mean, x);
  check_statistics(op, "inverse deviation", inverse_std, x);
  require_one_device(op, x, weight, mean, inverse_std, grad_y, grad_x, grad_weight, grad_bias);
  if (x.numel() == 0) {
    if (grad_weight.defined()) grad_weight.zero();
    if (grad_bias.defined()) grad_bias.zero();
    return;
  }
  if constexpr (kHasCuda) {
    if (const CudaOp range{op, x}) {
      return cuda::row_norm_backward(op, x, weight, mean, inverse_std, options, grad_y, grad_x, grad_weight, grad_bias);
    }
  }
  const auto run = cpu::computes_in_float(x.dtype()) ? cpu::row_norm_backward : reference::row_norm_backward;
  run(op, x, weight, mean, inverse_std, options, grad_y, grad_x, grad_weight, grad_bias);
}

}  // namespace tandem::kernels
