// Batch normalisation: checks, and the choice of implementation.
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_values.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check_images(std::string_view op, const Tensor& x, const Tensor& y, double eps) {
  require(x.rank() == 4 || x.rank() == 2, "{}: needs images [N, C, H, W] or rows [N, C], got {}", op, x);
  require(is_floating(x.dtype()) && x.dtype() == y.dtype() && x.shape() == y.shape(),
          "{}: input and output must be of one shape and one floating dtype, got {} and {}", op, x, y);
  require(eps >= 0.0, "{}: eps must not be negative, got {}", op, eps);
}

void check_channels(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x) {
  require(tensor.defined() && is_floating(tensor.dtype()) && tensor.shape() == Shape{x.size(1)},
          "{}: {} of an input {} must have a floating dtype and shape [{}], got {}", op, what, x, x.size(1), tensor);
}

void check_optional(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x) {
  if (tensor.defined()) check_channels(op, what, tensor, x);
}

void check_statistics(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& x) {
  check_channels(op, what, tensor, x);
  require(tensor.dtype() == batch_norm_statistics_dtype(x.dtype()), "{}: {} of an input {} must be {}, got {}", op,
          what, x, name_of(batch_norm_statistics_dtype(x.dtype())), tensor);
}

/// What an empty batch leaves behind: backward has nothing to do with it, but finds numbers.
void fill_neutral(const Out& saved_mean, const Out& saved_inverse_std) {
  saved_mean.zero();
  saved_inverse_std.fill(1.0);
}

/// The checks and the choice of both ways to train; `moments` may be undefined.
void train(const Tensor& x, const Tensor& moments, const Tensor& weight, const Tensor& bias, const Out& running_mean,
           const Out& running_var, const BatchNormOptions& options, const Out& y, const Out& saved_mean,
           const Out& saved_inverse_std) {
  constexpr std::string_view kOp = "batch_norm";
  check_images(kOp, x, y, options.eps);
  check_optional(kOp, "weight", weight, x);
  check_optional(kOp, "bias", bias, x);
  check_optional(kOp, "running mean", running_mean, x);
  check_optional(kOp, "running variance", running_var, x);
  check_statistics(kOp, "saved mean", saved_mean, x);
  check_statistics(kOp, "saved inverse deviation", saved_inverse_std, x);
  require_one_device(kOp, x, weight, bias, running_mean, running_var, y, saved_mean, saved_inverse_std, moments);
  if (x.numel() == 0) return fill_neutral(saved_mean, saved_inverse_std);
  require(x.numel() > x.size(1),
          "batch_norm: training needs more than one value per channel, got {}; use a larger batch", x);
  note_traffic(x, weight, bias, running_mean, running_mean, running_var, running_var, y, saved_mean, saved_inverse_std);
  if constexpr (kHasCuda) {
    if (const CudaOp op{"batch_norm_forward_train", x}) {
      return cuda::batch_norm_forward_train(x, weight, bias, running_mean, running_var, options, y, saved_mean,
                                            saved_inverse_std, moments);
    }
  }
  const auto run = cpu::supports_batch_norm(x, y) ? cpu::batch_norm_forward_train : reference::batch_norm_forward_train;
  run(x, weight, bias, running_mean, running_var, options, y, saved_mean, saved_inverse_std);
}

}  // namespace

DType batch_norm_statistics_dtype(DType x_dtype) { return x_dtype == DType::f64 ? DType::f64 : DType::f32; }

void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std) {
  train(x, {}, weight, bias, running_mean, running_var, options, y, saved_mean, saved_inverse_std);
}

void batch_norm_forward_from_moments(const Tensor& x, const Tensor& moments, const Tensor& weight, const Tensor& bias,
                                     const Out& running_mean, const Out& running_var, const BatchNormOptions& options,
                                     const Out& y, const Out& saved_mean, const Out& saved_inverse_std) {
  require(x.device().type == DeviceType::cuda && moments.defined() && moments.dtype() == DType::f64 &&
              moments.rank() == 3 && moments.size(0) == 3 && moments.size(2) == x.size(1),
          "batch_norm: moments of an input {} must be f64 [3, parts, {}] and on a GPU, got {}", x, x.size(1),
          moments.defined() ? describe(moments) : "nothing");
  train(x, moments, weight, bias, running_mean, running_var, options, y, saved_mean, saved_inverse_std);
}

void batch_norm_forward_eval(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, const BatchNormOptions& options, const Out& y,
                             const Out& saved_mean, const Out& saved_inverse_std) {
  constexpr std::string_view kOp = "batch_norm";
  check_images(kOp, x, y, options.eps);
  check_optional(kOp, "weight", weight, x);
  check_optional(kOp, "bias", bias, x);
  check_channels(kOp, "running mean", running_mean, x);
  check_channels(kOp, "running variance", running_var, x);
  check_statistics(kOp, "saved mean", saved_mean, x);
  check_statistics(kOp, "saved inverse deviation", saved_inverse_std, x);
  require_one_device(kOp, x, weight, bias, running_mean, running_var, y, saved_mean, saved_inverse_std);
  if (x.numel() == 0) return fill_neutral(saved_mean, saved_inverse_std);
  note_traffic(x, weight, bias, running_mean, running_var, y, saved_mean, saved_inverse_std);
  if constexpr (kHasCuda) {
    if (const CudaOp op{"batch_norm_forward_eval", x}) {
      return cuda::batch_norm_forward_eval(x, weight, bias, running_mean, running_var, options, y, saved_mean,
                                           saved_inverse_std);
    }
  }
  const auto run = cpu::supports_batch_norm(x, y) ? cpu::batch_norm_forward_eval : reference::batch_norm_forward_eval;
  run(x, weight, bias, running_mean, running_var, options, y, saved_mean, saved_inverse_std);
}

void batch_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& inverse_std, const BatchNormOptions& options, const Tensor& grad_y,
                         const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  constexpr std::string_view kOp = "batch_norm_backward";
  check_images(kOp, x, grad_y, options.eps);
  if (grad_x.defined()) check_images(kOp, x, grad_x, options.eps);
  check_optional(kOp, "weight", weight, x);
  check_optional(kOp, "bias", bias, x);
  check_statistics(kOp, "mean", mean, x);
  check_statistics(kOp, "inverse deviation", inverse_std, x);
  check_optional(kOp, "gradient of weight", grad_weight, x);
  check_optional(kOp, "gradient of bias", grad_bias, x);
  require_one_device(kOp, x, weight, bias, mean, inverse_std, grad_y, grad_x, grad_weight, grad_bias);
  if (x.numel() == 0) {
    if (grad_weight.defined()) grad_weight.zero();
    if (grad_bias.defined()) grad_bias.zero();
    return;
  }
  note_traffic(x, weight, mean, inverse_std, grad_y, grad_x, grad_weight, grad_bias);
  if constexpr (kHasCuda) {
    if (const CudaOp op{kOp, x}) {
      return cuda::batch_norm_backward(x, weight, bias, mean, inverse_std, options, grad_y, grad_x, grad_weight,
                                       grad_bias);
    }
  }
  const bool fast = cpu::supports_batch_norm(x, grad_y) && (!grad_x.defined() || cpu::supports_batch_norm(x, grad_x));
  const auto run = fast ? cpu::batch_norm_backward : reference::batch_norm_backward;
  run(x, weight, bias, mean, inverse_std, options, grad_y, grad_x, grad_weight, grad_bias);
}

}  // namespace tandem::kernels
