// One pass without a tape.
#include "tandem/train/evaluation.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/train/canonical_step.h"
#include "tandem/train/running_scores.h"

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
  const data::DistributedSampler& sampler = loader.sampler();
  const std::int64_t batch_size = loader.options().global_batch_size;
  const bool is_canonical = sampler.micro_batches() > 0;
  std::optional<CanonicalScores> canonical;
  if (is_canonical) canonical.emplace(group, sampler.micro_batches(), scoring.metrics_of_own());
  std::vector<RunningScores> scores;  // by micro-batch
  for (int i = 0; i < sampler.local_micro_batches(); ++i) scores.emplace_back(scoring);
  const std::vector<std::int64_t> order = details != nullptr ? order_of(loader) : std::vector<std::int64_t>();
  const auto add = [&](RunningScores& sum, const data::Batch& batch, std::int64_t begin) {
    if (batch.count() == 0) return;  // a small last batch may leave nothing for this rank
    const Tensor output = scoring.output(model, batch);
    const Tensor loss = scoring.loss(output, batch.labels);
    sum.begin_step();
    if (sum.add_on_device(loss, output, batch.labels, batch.count())) {
      sum.read_earlier_steps();
    } else {
      sum.add(scoring.begin_reading(loss, output, batch.labels), batch.count());
    }
    sum.end_step(batch.index + 1);
    if (details == nullptr) return;
    const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(batch.count());
    details->add(output, batch.labels, std::span(order).subspan(first, count));
  };
  loader.start(0);
  while (const auto batch = loader.next()) {
    const std::int64_t begin = details != nullptr || is_canonical ? sampler.part(batch->index, batch_size).begin : 0;
    for (int i = 0; is_canonical && i < sampler.local_micro_batches(); ++i) {
      const data::BatchPart part = sampler.micro_part(batch->index, batch_size, i);
      if (part.count == 0) continue;
      add(scores[static_cast<std::size_t>(i)], data::examples_of(*batch, part.begin - begin, part.count), part.begin);
    }
    if (!is_canonical) add(scores.front(), *batch, begin);
    if (ends && ends()) return std::nullopt;
  }
  if (!is_canonical) return scoring.sum_over_ranks(scores.front().all(), group);
  std::vector<Scores> sums;
  for (const RunningScores& of_micro_batch : scores) sums.push_back(of_micro_batch.all());
  return canonical->sum(sums);
}

}  // namespace tandem::train
