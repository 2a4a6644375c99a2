// One pass without a tape.
#include "tandem/train/evaluation.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"

namespace tandem::train {

Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
  return evaluate(model, loader, group, Scoring()).metrics;
}

Scores evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group, const Scoring& scoring) {
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(model, false);
  Scores scores;
  loader.start(0);
  while (const auto batch = loader.next()) {
    if (batch->count() == 0) continue;
    const Tensor output = scoring.output(model, *batch);
    scoring.add(scores, scoring.loss(output, batch->labels), output, batch->labels, batch->count());
  }
  return scoring.sum_over_ranks(scores, group);
}

}  // namespace tandem::train
