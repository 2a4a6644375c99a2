// Negative log likelihood: checks, and the choice of implementation.
#include "tandem/kernels/loss/nll_loss.h"

#include "tandem/core/describe.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/loss/nll_loss_implementations.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& log_probabilities, const Tensor& labels, const Tensor& losses) {
  require(log_probabilities.rank() == 2 && log_probabilities.size(1) >= 1 && is_floating(log_probabilities.dtype()),
          "{}: needs floating log probabilities [N, classes], got {}; use cast or reshape", op, log_probabilities);
  const std::int64_t rows = log_probabilities.size(0);
  require(labels.dtype() == DType::i64 && labels.shape() == Shape{rows},
          "{}: log probabilities {} need labels i64[{}], got {}; use cast or reshape", op, log_probabilities, rows,
          labels);
  require(is_floating(losses.dtype()) && losses.shape() == Shape{rows},
          "{}: log probabilities {} need floating losses [{}], got {}", op, log_probabilities, rows, losses);
  require_one_device(op, log_probabilities, labels, losses);
}

}  // namespace

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses) {
  constexpr std::string_view kOp = "nll_loss";
  check(kOp, log_probabilities, labels, losses);
  const DType dtype = softmax_cross_entropy_dtype(log_probabilities.dtype());
  require(losses.dtype() == dtype, "{}: the losses of {} must be {}, got {}", kOp, log_probabilities, dtype,
          losses.tensor());
  note_traffic(labels, labels, losses);
  if constexpr (kHasCuda) {
    if (const CudaOp op{"nll_loss_forward", losses}) return cuda::nll_loss_forward(log_probabilities, labels, losses);
  }
  require_labels(labels, log_probabilities.size(1), kOp);
  reference::nll_loss_forward(log_probabilities, labels, losses);
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad) {
  constexpr std::string_view kOp = "nll_loss_backward";
  check(kOp, grad, labels, grad_losses);
  note_traffic(labels, grad_losses, grad);
  if constexpr (kHasCuda) {
    if (const CudaOp op{kOp, grad}) return cuda::nll_loss_backward(labels, grad_losses, grad);
  }
  require_labels(labels, grad.size(1), kOp);
  reference::nll_loss_backward(labels, grad_losses, grad);
}

}  // namespace tandem::kernels
