// Differentiable softmax cross-entropy.
#include "tandem/autograd/functions/softmax_cross_entropy.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"

namespace tandem::autograd {

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing) {
  require(logits.defined() && labels.defined(), "softmax_cross_entropy: needs logits and labels, got {} and {}", logits,
          labels);
  const ProfileRange range("forward softmax_cross_entropy");
  const TensorOptions options{result_dtype(OpKind::loss, logits.dtype()), Layout::row_major, logits.device()};
  const Tensor loss = Tensor::empty({}, options);
  Tensor probabilities;
  if (should_record({logits})) probabilities = Tensor::empty(logits.shape(), options);
  unrecorded([&] {
    kernels::softmax_cross_entropy_forward(logits.contiguous(), labels, label_smoothing, Out(loss), Out(probabilities));
  });
  return record("softmax_cross_entropy", {logits}, loss,
                [label_smoothing, probabilities, logits_options = logits.options(),
                 saved_labels = SavedTensor(labels)](const BackwardContext& context) {
                  const Tensor grad_logits = Tensor::empty(probabilities.shape(), logits_options);
                  kernels::softmax_cross_entropy_backward(probabilities, saved_labels.get(), label_smoothing,
                                                          context.grad_output(), Out(grad_logits));
                  return std::vector<Tensor>{grad_logits};
                });
}

}  // namespace tandem::autograd
