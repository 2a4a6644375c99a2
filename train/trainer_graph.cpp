// Steps of a Trainer that a GPU is given as one unit of work.
#include "tandem/autograd/variable.h"
#include "tandem/kernels/notice.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/train/trainer.h"

#include <fmt/format.h>

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

}  // namespace

void Trainer::make_step_graph() {
  if (options_.cuda_graph == CudaGraph::off) return;
  std::string obstacle = obstacle_to_graph(parts_, options_, canonical_.has_value());
  if (obstacle.empty()) {
    try {
      const bool are_several = parts_.group.size() > 1;
      step_graph_ =
          std::make_unique<StepGraph>(parts_.model, parts_.optimizer, random_state_, options_.cuda_graph,
                                      are_several ? &parts_.group : nullptr, are_several ? &parts_.replicas : nullptr);
      return;
    } catch (const Error& error) {  // another trainer's graph has the gradients, say
      obstacle = error.what();
    }
  }
  require(options_.cuda_graph != CudaGraph::on,
          "trainer: steps cannot be CUDA graphs: {}; leave that out, or choose CudaGraph::automatic or off "
          "(--cuda-graph auto)",
          obstacle);
  kernels::notice(fmt::format("CUDA graph: off: {}", obstacle));
}

/// take_step() of one batch.
optim::FiniteCheck Trainer::take_step_by_graph(std::int64_t images_in_step) {
  const data::Batch batch = next_batch();
  set_lr_of_step(step_);
  const bool is_reported = options_.log_every > 0 && (step_ + 1) % options_.log_every == 0;
  // A launch is prepared by the answer of the last step but one.
  await_exchange(step_graph_->is_recorded() && !is_reported ? earlier_exchange_ : exchange_);
  if (is_reported) loss_scale_ = parts_.scaler.scale();
  optim::FiniteCheck taken;
  // As in run_micro_batch().
  const double share = static_cast<double>(batch.count()) / static_cast<double>(images_in_step) * parts_.group.size();
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
  const bool is_launch = step_graph_->take(batch, images_in_step, work);
  if (is_launch) {
    epoch_scores_.add_launched(batch.labels);
    taken = parts_.scaler.launched_step();
  }
  if (scored.loss.defined()) {
    epoch_scores_.add(scored, batch.count());
  } else {
    epoch_scores_.read_earlier_steps();
  }
  phases_.end(&PhaseTimes::backward);
  return taken;
}

}  // namespace tandem::train
