// One pass without a tape.
#include "tandem/train/evaluation.h"

#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/train/batch_loss.h"

namespace tandem::train {

Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(model, false);
  Metrics metrics;
  loader.start(0);
  while (const auto batch = loader.next()) {
    if (batch->count() == 0) continue;
    const Tensor logits = model(batch->images);
    const double loss = batch_loss(autograd::softmax_cross_entropy(logits, batch->labels), logits, batch->labels);
    metrics.add(loss, count_correct(logits, batch->labels), batch->count());
  }
  return sum_over_ranks(metrics, group);
}

}  // namespace tandem::train
