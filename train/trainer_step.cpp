// A training step: from the loader's next batch to new weights.
#include "tandem/autograd/variable.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/train/layer_norms.h"
#include "tandem/train/trainer.h"

#include <cmath>
#include <optional>
#include <utility>

namespace tandem::train {
namespace {

/// Where an error is on its way already.
void complete_exchange(comm::DistributedDataParallel& replicas) {
  try {
    replicas.finish();
  } catch (const Error&) {  // another rank is gone: that error is not the first
    return;
  }
}

}  // namespace

/// `share` times the gradient of the batch's mean loss goes to the parameters, times the loss scale. Without a loss in
/// what it returns, the batch is counted already.
ScoredBatch Trainer::compute(const data::Batch& batch, double share) {
  const Tensor output = scoring_.output(parts_.model, batch);
  const Tensor loss = scoring_.loss(output, batch.labels);
  require(autograd::requires_grad(loss),
          "trainer: the loss does not depend on any parameter that wants a gradient: are all of them frozen "
          "(Module::requires_grad()), or does the loss function detach the output?");
  ScoredBatch scored;
  if (canonical_ || !epoch_scores_.add_on_device(loss, output, batch.labels, batch.count()))
    scored = scoring_.begin_reading(loss, output, batch.labels);
  phases_.end(&PhaseTimes::forward);
  autograd::backward(loss, parts_.scaler.start_gradient(loss, share));
  return scored;
}

/// The loader's next batch.
data::DeferredBatch Trainer::next_deferred_batch() {
  auto batch = parts_.train_loader.next_deferred();
  phases_.end(&PhaseTimes::data);
  require(batch.has_value(), "trainer: the loader ended before the epoch");
  random_state_->advance();
  return *std::move(batch);
}

data::Batch Trainer::next_batch() { return next_deferred_batch().whole(); }

void Trainer::run_micro_batch(std::int64_t images_in_step, bool is_last) {
  const data::Batch batch = next_batch();
  // A small last batch may leave nothing for this rank: it then only takes part in the exchange.
  if (batch.count() == 0) return;
  // Gradients are averaged over ranks with equal weights, so a rank's mean loss counts by its share of the step's
  // images, times ranks.
  const double share = static_cast<double>(batch.count()) / static_cast<double>(images_in_step);
  const ScoredBatch scored = compute(batch, share * parts_.group.size());
  try {
    if (scored.loss.defined()) {
      epoch_scores_.add(scored, batch.count());
    } else {
      epoch_scores_.read_earlier_steps();
    }
    phases_.end(&PhaseTimes::backward);
  } catch (...) {
    // Backward has begun the exchange of the last micro-batch, which other ranks complete: the replicas are then ready
    // for another step.
    if (is_last) complete_exchange(parts_.replicas);
    throw;
  }
}

/// All of this rank's micro-batches of a batch.
void Trainer::compute_micro_batches(const data::Batch& batch, std::int64_t images_in_step) {
  const data::DistributedSampler& sampler = parts_.train_loader.sampler();
  const std::int64_t batch_size = parts_.train_loader.options().global_batch_size,
                     begin = sampler.part(batch.index, batch_size).begin;
  for (int i = 0; i < sampler.local_micro_batches(); ++i) {
    const data::BatchPart part = sampler.micro_part(batch.index, batch_size, i);
    const double share = static_cast<double>(part.count) / static_cast<double>(images_in_step);
    if (part.count == 0) {  // of a small last batch
      canonical_->skip_micro_batch();
      continue;
    }
    canonical_->restore();
    random_state_->set_rank(static_cast<std::uint32_t>(canonical_->first() + i));
    const data::Batch mine = data::examples_of(batch, part.begin - begin, part.count);
    const ScoredBatch scored = compute(mine, share);
    Scores scores;
    scoring_.add(scores, scored, mine.count());
    canonical_->end_micro_batch(share, scores);
    phases_.end(&PhaseTimes::backward);
  }
}

/// A step in canonical mode up to its gradients. Every rank has the scores of all; rank 0 counts them.
void Trainer::run_canonical_batch(std::int64_t images_in_step) {
  const data::Batch batch = next_batch();
  const auto no_sync = parts_.replicas.no_sync();
  canonical_->start();
  try {
    compute_micro_batches(batch, images_in_step);
  } catch (...) {
    canonical_->restore();
    throw;
  }
  random_state_->set_rank(0);  // what a program draws between steps is the same on any number of ranks
  const Scores all = canonical_->finish();
  epoch_scores_.add(all, parts_.group.rank() == 0 ? all.metrics.loss_sum : 0.0);
  all_know_ = all_know_ || !std::isfinite(all.metrics.loss_sum);
}

/// What this rank brings to sums over ranks.
Scores Trainer::own_scores() const { return canonical_ && parts_.group.rank() != 0 ? Scores() : epoch_scores_.all(); }

void Trainer::set_lr_of_step(std::int64_t step) {
  if (parts_.optimizer.lr() != lr_) base_lr_ = parts_.optimizer.lr();  // the program has set it
  parts_.optimizer.set_lr(base_lr_);
  parts_.optimizer.set_lr_factor(parts_.schedule.lr_factor(static_cast<double>(step)));
  lr_ = parts_.optimizer.lr();
}

/// Before the host waits for what a GPU says of that step with a loss scale: where a rank is gone, this ends with an
/// Error, and waiting for the GPU would not end.
void Trainer::await_exchange(const std::shared_ptr<comm::Work>& exchange) const {
  if (exchange != nullptr && parts_.scaler.is_enabled()) exchange->wait();
}

/// All of a step that changes weights by gradients. Returns whether it was taken.
optim::FiniteCheck Trainer::take_step(std::int64_t images, std::int64_t micro_batches, bool is_measured) {
  parts_.optimizer.zero_grad();
  phases_.end(&PhaseTimes::optimizer);
  if (canonical_) {
    run_canonical_batch(images);
  } else {
    for (std::int64_t i = 0; i + 1 < micro_batches; ++i) {
      const auto no_sync = parts_.replicas.no_sync();
      run_micro_batch(images, false);
    }
    run_micro_batch(images, true);
    parts_.replicas.finish();
  }
  await_exchange(exchange_);
  phases_.end(&PhaseTimes::communication);
  const bool is_reported = options_.log_every > 0 && (step_ + 1) % options_.log_every == 0;
  if (is_reported || options_.l1 > 0.0) loss_scale_ = parts_.scaler.scale();
  if (options_.l1 > 0.0) optim::add_l1_gradient(parts_.optimizer.parameters(), options_.l1 * loss_scale_);
  parts_.scaler.unscale(parts_.optimizer);
  std::optional<LayerMeter> meter;
  if (is_measured) meter.emplace(parts_.model, parts_.optimizer);
  if (options_.clip_norm > 0.0) parts_.optimizer.clip_gradients(options_.clip_norm);
  set_lr_of_step(step_);
  optim::FiniteCheck taken = parts_.scaler.step(parts_.optimizer);
  if (meter) layer_norms_ = meter->norms();
  parts_.scaler.update();
  return taken;
}

void Trainer::run_step(std::int64_t images, std::int64_t micro_batches, StepPlace place) {
  parts_.optimizer.begin_step(step_);
  epoch_scores_.begin_step();
  const bool is_measured = place != StepPlace::in_epoch && options_.layer_norms;
  optim::FiniteCheck taken;
  if (step_graph_ && !is_measured && !timeline_is_recorded()) {
    taken = take_step_by_graph(images);
  } else {
    taken = take_step(images, micro_batches, is_measured);
  }
  await_exchange(exchange_);
  skipped_in_a_row_.add(taken);
  if (ema_) ema_->update(taken);
  if (lookahead_) lookahead_->after_step(step_ + 1, steps_in_all(), taken);
  if (lookahead_ && place == StepPlace::ends_run) lookahead_->finish();
  phases_.end(&PhaseTimes::optimizer);
  ++step_;
  ++epoch_step_;
  earlier_exchange_ = std::exchange(exchange_, parts_.replicas.exchange_under_way());
  epoch_scores_.end_step(step_, exchange_);
}

}  // namespace tandem::train
