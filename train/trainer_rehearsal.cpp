// Steps that are taken back.
#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/train/local_failure.h"
#include "tandem/train/state_copy.h"
#include "tandem/train/trainer.h"

#include <algorithm>
#include <utility>

namespace tandem::train {

void Trainer::rehearse_evaluation() {
  data::Loader* const loader = parts_.validation_loader != nullptr ? parts_.validation_loader : parts_.test_loader;
  if (loader == nullptr) return;
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(parts_.model, false);
  loader->start(0);
  if (evaluation_graph_) evaluation_graph_->start();
  const std::int64_t most = evaluation_graph_ ? EvaluationGraph::kBatchesToRecord : 1;
  for (std::int64_t i = 0; i < most; ++i) {
    const auto batch = loader->next();
    if (!batch || batch->count() == 0) break;
    if (evaluation_graph_) {
      evaluation_graph_->add(*batch);
      continue;
    }
    const Tensor output = test_scoring_.output(parts_.model, *batch);
    Scores scores;
    test_scoring_.add(scores,
                      test_scoring_.begin_reading(test_scoring_.loss(output, batch->labels), output, batch->labels),
                      batch->count());
  }
  if (evaluation_graph_) evaluation_graph_->scores();  // a label outside of the classes is told
}

void Trainer::rehearse(std::int64_t steps) {
  require(steps >= 0, "trainer: a rehearsal takes 0 steps or more, got {}", steps);
  if (steps == 0) return;
  check_optimizer();
  const NamedTensors state = clones_of(state_dict());
  const bool was_resumed = is_resumed_;
  const double seconds = epoch_seconds_before_;
  const std::int64_t last_epoch = std::exchange(last_epoch_, std::max(last_epoch_, epochs_done_ + 1));
  const std::int64_t accumulation = options_.accumulation, batches = parts_.train_loader.batches();
  {
    const layers::ModeScope modes(parts_.model);
    if (!parts_.model.training()) parts_.model.train();
    parts_.train_loader.start(0, 0, step_graph_ != nullptr);
    for (std::int64_t i = 0; i < std::min(steps, steps_per_epoch()); ++i) {
      run_step(images_before(i + 1) - images_before(i), std::min(accumulation, batches - i * accumulation),
               StepPlace::in_epoch);
    }
  }
  LocalFailure failure;
  failure.guard([&] {
    rehearse_evaluation();
    epoch_scores_.all();  // a label outside of the classes is told
  });
  failure.tell(parts_.group);
  load_state_dict(state);
  is_resumed_ = was_resumed;
  epoch_seconds_before_ = seconds;
  last_epoch_ = last_epoch;
  if (step_ == 0) {  // no schedule has set the rate yet
    parts_.optimizer.set_lr_factor(1.0);
    lr_ = parts_.optimizer.lr();
  }
  epoch_scores_.forget_bad_step();
  all_know_ = false;
  layer_norms_.clear();
  parts_.replicas.take_totals();
  phases_.start();
}

}  // namespace tandem::train
