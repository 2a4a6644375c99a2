// Differentiable softmax cross-entropy.
#include "tandem/autograd/functions/softmax_cross_entropy.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/compare.h"
#include "tandem/autograd/functions/pointwise.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/functions/softmax.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"

namespace tandem::autograd {

namespace {

/// Of class probabilities: -sum of p log softmax(logits), with p smoothed, a mean over rows.
Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& probabilities, double label_smoothing) {
  require(logits.rank() == 2 && logits.shape() == probabilities.shape() && logits.size(0) > 0 && logits.size(1) > 0,
          "softmax_cross_entropy: class probabilities must have the shape of the logits, [N, C], got {} and {}",
          probabilities, logits);
  require(label_smoothing >= 0.0 && label_smoothing <= 1.0,
          "softmax_cross_entropy: label smoothing must be in [0, 1], got {}", label_smoothing);
  const DType dtype = result_dtype(OpKind::loss, logits.dtype());
  Tensor target = probabilities.detach();
  if (target.dtype() != dtype) target = cast(target, dtype);
  if (label_smoothing > 0.0)
    target = add(mul(target, 1.0 - label_smoothing), label_smoothing / static_cast<double>(logits.size(1)));
  const Tensor wide = logits.dtype() == dtype ? logits : cast(logits, dtype);
  return mul(sum(mul(log_softmax(wide, 1), target)), -1.0 / static_cast<double>(logits.size(0)));
}

/// The mean over classes of -log p times the class's weight, of each row that counts.
Tensor smooth_losses(const Tensor& log_p, const Tensor& labels, const CrossEntropyOptions& options) {
  const Tensor each = options.weight.defined() ? mul(log_p, cast(options.weight, log_p.dtype())) : log_p;
  const Tensor losses = mul(sum(each, {1}), -1.0 / static_cast<double>(log_p.size(1)));
  if (!options.ignore_index) return losses;
  const LabelWeights kept{.ignore_index = options.ignore_index};
  const Tensor counts = unrecorded([&] { return nll_of_rows(log_p.detach(), labels, kept).weights; });
  return where(gt(counts, 0.0), losses, 0.0);  // a product would keep what is NaN or infinite in rows that do not count
}

}  // namespace

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
  require(logits.defined() && labels.defined(), "softmax_cross_entropy: needs logits and labels, got {} and {}", logits,
          labels);
  const double smoothing = options.label_smoothing;
  if (!options.weight.defined() && !options.ignore_index && options.reduction == Reduction::mean)
    return softmax_cross_entropy(logits, labels, smoothing);
  require(logits.rank() == 2 && logits.size(1) >= 1 && is_floating(logits.dtype()),
          "softmax_cross_entropy: needs floating logits [N, classes], got {}; use cast or reshape", logits);
  require(labels.dtype() == DType::i64,
          "softmax_cross_entropy: weights, ignore_index and reductions are for labels i64[{}], got {}", logits.size(0),
          labels);
  require(smoothing >= 0.0 && smoothing <= 1.0, "softmax_cross_entropy: label smoothing must lie in [0, 1], got {}",
          smoothing);
  const Tensor log_p = log_softmax(cast(logits, result_dtype(OpKind::loss, logits.dtype())), 1);
  RowLosses rows = nll_of_rows(log_p, labels, {.of_classes = options.weight, .ignore_index = options.ignore_index});
  if (smoothing > 0.0)
    rows.losses = add(mul(rows.losses, 1.0 - smoothing), mul(smooth_losses(log_p, labels, options), smoothing));
  return reduce_weighted(rows, options.reduction);
}

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing) {
  require(logits.defined() && labels.defined(), "softmax_cross_entropy: needs logits and labels, got {} and {}", logits,
          labels);
  if (is_floating(labels.dtype()) && labels.rank() == 2)
    return cross_entropy_of_probabilities(logits, labels, label_smoothing);
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
