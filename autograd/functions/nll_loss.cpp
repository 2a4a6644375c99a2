// Differentiable negative log likelihood.
#include "tandem/autograd/functions/nll_loss.h"

#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/operators.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"

namespace tandem::autograd {

RowLosses nll_of_rows(const Tensor& log_probabilities, const Tensor& labels, const LabelWeights& weights) {
  require(log_probabilities.defined() && labels.defined(),
          "nll_loss: needs log probabilities and labels, got {} and {}", log_probabilities, labels);
  require(log_probabilities.rank() == 2, "nll_loss: needs floating log probabilities [N, classes], got {}",
          log_probabilities);
  require(!requires_grad(weights.of_classes), "nll_loss: the weights of classes, {}, have no gradient; give detach()",
          weights.of_classes);
  const DType dtype = result_dtype(OpKind::loss, log_probabilities.dtype());
  const TensorOptions options{.dtype = dtype, .device = log_probabilities.device()};
  const bool weighs = weights.of_classes.defined() || weights.ignore_index.has_value();
  const Tensor losses = Tensor::empty({log_probabilities.size(0)}, options);
  const Tensor counts = weighs ? Tensor::empty(losses.shape(), options) : Tensor();
  unrecorded([&] { kernels::nll_loss_forward(log_probabilities, labels, Out(losses), weights, Out(counts)); });
  if (!should_record({log_probabilities})) return {losses, counts};
  const Tensor recorded =
      record("nll_loss", {log_probabilities}, losses,
             [shape = log_probabilities.shape(), options = log_probabilities.options(), weights,
              saved_labels = SavedTensor(labels)](const BackwardContext& context) {
               const Tensor gradient = Tensor::empty(shape, options);
               kernels::nll_loss_backward(saved_labels.get(), context.grad_output(), Out(gradient), weights);
               return std::vector<Tensor>{gradient};
             });
  return {recorded, counts};
}

Tensor reduce_weighted(const RowLosses& rows, Reduction reduction) {
  if (reduction != Reduction::mean || !rows.weights.defined()) return reduce(rows.losses, reduction);
  return sum(rows.losses) / sum(rows.weights);
}

Tensor NllLoss::operator()(const Tensor& log_probabilities, const Tensor& labels, Reduction reduction,
                           const LabelWeights& weights) const {
  return reduce_weighted(nll_of_rows(log_probabilities, labels, weights), reduction);
}

}  // namespace tandem::autograd
