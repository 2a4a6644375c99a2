// Differentiable negative log likelihood.
#include "tandem/autograd/functions/nll_loss.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/loss/nll_loss.h"

namespace tandem::autograd {

namespace {

/// One loss per row.
Tensor losses_of_rows(const Tensor& log_probabilities, const Tensor& labels) {
  const DType dtype = result_dtype(OpKind::loss, log_probabilities.dtype());
  const Tensor losses =
      Tensor::empty({log_probabilities.size(0)}, {.dtype = dtype, .device = log_probabilities.device()});
  unrecorded([&] { kernels::nll_loss_forward(log_probabilities, labels, Out(losses)); });
  if (!should_record({log_probabilities})) return losses;
  return record("nll_loss", {log_probabilities}, losses,
                [shape = log_probabilities.shape(), options = log_probabilities.options(),
                 saved_labels = SavedTensor(labels)](const BackwardContext& context) {
                  const Tensor gradient = Tensor::empty(shape, options);
                  kernels::nll_loss_backward(saved_labels.get(), context.grad_output(), Out(gradient));
                  return std::vector<Tensor>{gradient};
                });
}

}  // namespace

Tensor NllLoss::operator()(const Tensor& log_probabilities, const Tensor& labels, Reduction reduction) const {
  require(log_probabilities.defined() && labels.defined(),
          "nll_loss: needs log probabilities and labels, got {} and {}", log_probabilities, labels);
  require(log_probabilities.rank() == 2, "nll_loss: needs floating log probabilities [N, classes], got {}",
          log_probabilities);
  return reduce(losses_of_rows(log_probabilities, labels), reduction);
}

}  // namespace tandem::autograd
