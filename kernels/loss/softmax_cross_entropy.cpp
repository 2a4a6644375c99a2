// Softmax cross-entropy: checks, and the choice of implementation.
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& logits, const Tensor& labels, double label_smoothing) {
  require(logits.rank() == 2 && logits.size(1) >= 1 && is_floating(logits.dtype()),
          "{}: needs floating logits [N, classes], got {}; use cast or reshape", op, describe(logits));
  require(labels.dtype() == DType::i64 && labels.shape() == Shape{logits.size(0)},
          "{}: logits {} need labels i64[{}], got {}; use cast or reshape", op, describe(logits), logits.size(0),
          describe(labels));
  require(label_smoothing >= 0.0 && label_smoothing <= 1.0, "{}: label smoothing must lie in [0, 1], got {}", op,
          label_smoothing);
}

}  // namespace

DType softmax_cross_entropy_dtype(DType logits_dtype) { return logits_dtype == DType::f64 ? DType::f64 : DType::f32; }

void require_labels(const Tensor& labels, std::int64_t classes, std::string_view op,
                    std::optional<std::int64_t> ignored) {
  require(labels.dtype() == DType::i64 && labels.rank() == 1, "{}: labels must be i64[N], got {}", op,
          describe(labels));
  if (labels.numel() == 0) return;
  const Tensor here = labels.to(Device{});
  const std::int64_t* const values = here.data<std::int64_t>();
  for (std::int64_t n = 0; n < here.size(0); ++n) {
    const std::int64_t label = values[n * here.stride(0)];
    require((label >= 0 && label < classes) || label == ignored,
            "{}: label {} of the batch is {}, outside of the {} classes", op, n, label, classes);
  }
}

void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
                                   const Out& probabilities) {
  constexpr std::string_view kOp = "softmax_cross_entropy";
  check(kOp, logits, labels, label_smoothing);
  const DType dtype = softmax_cross_entropy_dtype(logits.dtype());
  require(loss.dtype() == dtype && loss.rank() == 0, "{}: the loss must be {}[], got {}", kOp, name_of(dtype),
          describe(loss));
  require(!probabilities.defined() || (probabilities.dtype() == dtype && probabilities.shape() == logits.shape() &&
                                       probabilities.is_dense(Layout::row_major)),
          "{}: probabilities must be dense {}{}, got {}", kOp, name_of(dtype), to_string(logits.shape()),
          describe(probabilities));
  require_one_device(kOp, logits, labels, loss, probabilities);
  note_traffic(logits, labels, loss, probabilities);
  if constexpr (kHasCuda) {
    if (const CudaOp op{"softmax_cross_entropy_forward", logits}) {
      return cuda::softmax_cross_entropy_forward(logits, labels, label_smoothing, loss, probabilities);
    }
  }
  require_labels(labels, logits.size(1));
  const auto run = cpu::supports_softmax_cross_entropy(logits) ? cpu::softmax_cross_entropy_forward
                                                               : reference::softmax_cross_entropy_forward;
  run(logits, labels, label_smoothing, loss, probabilities);
}

void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Out& grad_logits) {
  constexpr std::string_view kOp = "softmax_cross_entropy_backward";
  check(kOp, probabilities, labels, label_smoothing);
  require(grad_logits.shape() == probabilities.shape() && is_floating(grad_logits.dtype()) && grad_loss.rank() == 0,
          "{}: probabilities {} do not go with gradients {} of the loss and {} of the logits", kOp,
          describe(probabilities), describe(grad_loss), describe(grad_logits));
  require_one_device(kOp, grad_logits, probabilities, labels, grad_loss);
  note_traffic(probabilities, labels, grad_loss, grad_logits);
  if constexpr (kHasCuda) {
    if (const CudaOp op{kOp, grad_logits}) {
      return cuda::softmax_cross_entropy_backward(probabilities, labels, label_smoothing, grad_loss, grad_logits);
    }
  }
  const bool fast = probabilities.dtype() == DType::f32 && probabilities.is_dense(Layout::row_major) &&
                    cpu::supports_softmax_cross_entropy(grad_logits);
  const auto run = fast ? cpu::softmax_cross_entropy_backward : reference::softmax_cross_entropy_backward;
  run(probabilities, labels, label_smoothing, grad_loss, grad_logits);
}

}  // namespace tandem::kernels
