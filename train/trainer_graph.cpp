// Steps and evaluated batches of a Trainer that a GPU is given as one unit of work.
#include "tandem/autograd/variable.h"
#include "tandem/kernels/notice.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/train/trainer.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::train {
namespace {

/// Why steps cannot be recorded; "": they can.
std::string obstacle_to_graph(const TrainingParts& parts, const TrainerOptions& options, bool is_canonical) {
  if (parts.optimizer.parameters().front().device().type != DeviceType::cuda) return "the model is on the CPU";
  if (is_canonical) return "in canonical mode the host adds up the gradients";
  if (std::string obstacle = parts.replicas.recording_obstacle(); !obstacle.empty()) return obstacle;
  const std::int64_t batch = parts.train_loader.options().global_batch_size;
  if (batch < parts.group.size()) return "a batch has fewer images than there are ranks";
  if (options.accumulation > 1) return "a step is several micro-batches";
  if (parts.scaler.is_enabled() && options.l1 > 0.0) return "the host scales the L1 penalty by the loss scale";
  if (!options.metrics.empty()) return "metrics of the program's own are computed by the host";
  return "";
}

/// Why batches of evaluations cannot be; "": they can.
std::string obstacle_to_evaluation_graph(const TrainingParts& parts, const TrainerOptions& options,
                                         const Scoring& scoring, bool is_canonical) {
  if (std::string obstacle = EvaluationGraph::obstacle(parts.model, scoring); !obstacle.empty()) return obstacle;
  if (is_canonical) return "in canonical mode the host adds up the gradients";
  if (options.dead_relus) return "the outputs of each ReLU are looked at";
  return "";
}

}  // namespace

/// Returns why not; "": it is there.
std::string Trainer::make_step_graph() {
  std::string obstacle = obstacle_to_graph(parts_, options_, canonical_.has_value());
  if (!obstacle.empty()) return obstacle;
  try {
    const bool are_several = parts_.group.size() > 1;
    step_graph_ =
        std::make_unique<StepGraph>(parts_.model, parts_.optimizer, random_state_, options_.cuda_graph,
                                    are_several ? &parts_.group : nullptr, are_several ? &parts_.replicas : nullptr);
  } catch (const Error& error) {  // another trainer's graph has the gradients, say
    obstacle = error.what();
  }
  return obstacle;
}

/// The same.
std::string Trainer::make_evaluation_graph() {
  std::string obstacle = obstacle_to_evaluation_graph(parts_, options_, test_scoring_, canonical_.has_value());
  if (obstacle.empty())
    evaluation_graph_ =
        std::make_unique<EvaluationGraph>(parts_.model, test_scoring_, options_.cuda_graph, options_.detailed);
  return obstacle;
}

void Trainer::make_graphs() {
  if (options_.cuda_graph == CudaGraph::off) return;
  const std::string of_steps = make_step_graph();
  require(of_steps.empty() || options_.cuda_graph != CudaGraph::on,
          "trainer: steps cannot be CUDA graphs: {}; leave that out, or choose CudaGraph::automatic or off "
          "(--cuda-graph auto)",
          of_steps);
  const bool evaluates = parts_.test_loader != nullptr || parts_.validation_loader != nullptr;
  const std::string of_evaluations = evaluates ? make_evaluation_graph() : of_steps;
  if (of_evaluations == of_steps) {
    if (!of_steps.empty()) kernels::notice(fmt::format("CUDA graph: off: {}", of_steps));
    return;
  }
  if (!of_steps.empty()) kernels::notice(fmt::format("CUDA graph: off for steps: {}", of_steps));
  if (!of_evaluations.empty()) kernels::notice(fmt::format("CUDA graph: off for evaluations: {}", of_evaluations));
}

/// take_step() of one batch.
optim::FiniteCheck Trainer::take_step_by_graph(std::int64_t images_in_step) {
  data::DeferredBatch batch = next_deferred_batch();
  const Tensor labels = batch.labels();
  const std::int64_t count = batch.count();
  set_lr_of_step(step_);
  const bool is_reported = options_.log_every > 0 && (step_ + 1) % options_.log_every == 0;
  // A launch is prepared by the answer of the last step but one.
  await_exchange(step_graph_->is_recorded() && !is_reported ? earlier_exchange_ : exchange_);
  if (is_reported) loss_scale_ = parts_.scaler.scale();
  optim::FiniteCheck taken;
  // As in run_micro_batch().
  const double share = static_cast<double>(count) / static_cast<double>(images_in_step) * parts_.group.size();
  ScoredBatch scored;
  const auto work = [&](const data::Batch& given) {
    parts_.scaler.abandon_step();  // of a recording that has failed
    parts_.optimizer.zero_grad();
    if (given.count() > 0) scored = compute(given, share);
    parts_.replicas.finish();
    if (WorkGraph::is_recording()) step_graph_->check_places();
    if (options_.l1 > 0.0) optim::add_l1_gradient(parts_.optimizer.parameters(), options_.l1);
    if (options_.clip_norm > 0.0) {
      parts_.scaler.unscale(parts_.optimizer);
      parts_.optimizer.clip_gradients(options_.clip_norm);
    }
    taken = parts_.scaler.step(parts_.optimizer);
    parts_.scaler.update();
    if (WorkGraph::is_recording()) taken = {};  // its answer is in the graph's memory
  };
  const bool is_launch = step_graph_->take(std::move(batch), images_in_step, work);
  if (is_launch) {
    epoch_scores_.add_launched(labels);
    taken = parts_.scaler.launched_step();
  }
  if (scored.loss.defined()) {
    epoch_scores_.add(scored, count);
  } else {
    epoch_scores_.read_earlier_steps();
  }
  phases_.end(&PhaseTimes::backward);
  return taken;
}

}  // namespace tandem::train
