// One pass without a tape.
#include "tandem/train/evaluation.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"

#include <span>
#include <vector>

namespace tandem::train {
namespace {

/// The numbers of the loader's examples, as they come in epoch 0. Throws Error for a stream.
std::vector<std::int64_t> order_of(const data::Loader& loader) {
  loader.dataset();
  return loader.sampler().order(0);
}

}  // namespace

Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
  return evaluate(model, loader, group, Scoring()).metrics;
}

Scores evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group, const Scoring& scoring,
                EvaluationDetails* details) {
  return *evaluate_unless({}, model, loader, group, scoring, details);
}

std::optional<Scores> evaluate_unless(const std::function<bool()>& ends, layers::Module& model, data::Loader& loader,
                                      comm::ProcessGroup& group, const Scoring& scoring, EvaluationDetails* details) {
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(model, false);
  Scores scores;
  const std::vector<std::int64_t> order = details != nullptr ? order_of(loader) : std::vector<std::int64_t>();
  loader.start(0);
  while (const auto batch = loader.next()) {
    if (batch->count() > 0) {  // a small last batch may leave nothing for this rank
      const Tensor output = scoring.output(model, *batch);
      scoring.add(scores, scoring.loss(output, batch->labels), output, batch->labels, batch->count());
      if (details != nullptr) {
        const data::BatchPart part = loader.sampler().part(batch->index, loader.options().global_batch_size);
        details->add(
            output, batch->labels,
            std::span(order).subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count)));
      }
    }
    if (ends && ends()) return std::nullopt;
  }
  return scoring.sum_over_ranks(scores, group);
}

}  // namespace tandem::train
