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

void check_weights(std::string_view op, const Tensor& of_classes, const Tensor& log_probabilities) {
  if (!of_classes.defined()) return;
  require(is_floating(of_classes.dtype()) && of_classes.shape() == Shape{log_probabilities.size(1)},
          "{}: the weights of the classes of {} must be floating and of shape [{}], got {}; give one for each class",
          op, log_probabilities, log_probabilities.size(1), of_classes);
  require_one_device(op, log_probabilities, of_classes);
}

}  // namespace

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses,
                      const LabelWeights& weights, const Out& row_weights) {
  constexpr std::string_view kOp = "nll_loss";
  check(kOp, log_probabilities, labels, losses);
  check_weights(kOp, weights.of_classes, log_probabilities);
  const DType dtype = softmax_cross_entropy_dtype(log_probabilities.dtype());
  require(losses.dtype() == dtype, "{}: the losses of {} must be {}, got {}", kOp, log_probabilities, dtype,
          losses.tensor());
  require(!row_weights.defined() || (row_weights.dtype() == dtype && row_weights.shape() == losses.shape() &&
                                     row_weights.device() == losses.device()),
          "{}: the weights of rows must be {} on {}, got {}", kOp, losses.tensor(), name_of(losses.device()),
          row_weights.tensor());
  note_traffic(labels, labels, losses);
  if constexpr (kHasCuda) {
    if (const CudaOp op{"nll_loss_forward", losses})
      return cuda::nll_loss_forward(log_probabilities, labels, losses, weights, row_weights);
  }
  require_labels(labels, log_probabilities.size(1), kOp, weights.ignore_index);
  reference::nll_loss_forward(log_probabilities, labels, losses, weights, row_weights);
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad, const LabelWeights& weights) {
  constexpr std::string_view kOp = "nll_loss_backward";
  check(kOp, grad, labels, grad_losses);
  check_weights(kOp, weights.of_classes, grad);
  note_traffic(labels, grad_losses, grad);
  if constexpr (kHasCuda) {
    if (const CudaOp op{kOp, grad}) return cuda::nll_loss_backward(labels, grad_losses, grad, weights);
  }
  require_labels(labels, grad.size(1), kOp, weights.ignore_index);
  reference::nll_loss_backward(labels, grad_losses, grad, weights);
}

}  // namespace tandem::kernels
