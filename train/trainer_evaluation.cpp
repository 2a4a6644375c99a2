// What a trainer evaluates behind an epoch and behind the last one.
#include "tandem/core/timeline.h"
#include "tandem/train/averaged_model.h"
#include "tandem/train/dead_relus.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/process_info.h"
#include "tandem/train/trainer.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace tandem::train {

/// Whether this epoch, whose steps are done, is one of those that are evaluated.
bool Trainer::is_evaluated(std::int64_t epoch) const {
  return epoch % options_.evaluate_every == 0 || epoch == last_epoch_ || step_ >= last_step_;
}

/// Makes the model the same on all ranks, as an epoch's end has it.
void Trainer::sync_replicas() {
  check_buffers();
  // Batch norm's running statistics differ between ranks, which saw different images: rank 0's are the model's.
  parts_.replicas.sync_buffers();
  if (options_.check_replicas) parts_.replicas.check_replicas();
  sync_averages();
}

/// Of validation where there is that, else of test. False if the observer ended it.
bool Trainer::fill_in_evaluation(EpochRecord& record, const TrainObserver& observer) {
  sync_replicas();
  if (parts_.validation_loader == nullptr) {
    if (!fill_in_test(record, observer)) return false;
  } else {
    const std::optional<Scores> scores = evaluate(*parts_.validation_loader, "validation", observer);
    if (!scores) return false;
    record.validation_loss = scores->metrics.loss();
    record.validation_accuracy = test_scoring_.accuracy(scores->metrics);
    record.validation_metrics = test_scoring_.values(*scores);
  }
  return true;
}

/// Of a model whose buffers are the same on all ranks. False if the observer ended it.
bool Trainer::fill_in_test(EpochRecord& record, const TrainObserver& observer) {
  if (parts_.test_loader == nullptr) return true;
  const std::optional<Scores> test = evaluate(*parts_.test_loader, "test", observer);
  if (!test) return false;
  record.test_loss = test->metrics.loss();
  record.test_accuracy = test_scoring_.accuracy(test->metrics);
  record.test_metrics = test_scoring_.values(*test);
  return true;
}

std::optional<Scores> Trainer::evaluate(data::Loader& loader, const char* split, const TrainObserver& observer) {
  std::optional<AveragedModel> averaged;
  if (ema_) averaged.emplace(parts_.model, *ema_);
  const std::function<bool()> ends = may_stop_ ? [&] { return must_stop(observer); } : std::function<bool()>();
  EvaluationDetails details;
  EvaluationDetails* const wanted_details = options_.detailed ? &details : nullptr;
  std::optional<DeadReluMeter> relus;
  std::optional<Scores> scores;
  if (evaluation_graph_ && !timeline_is_recorded()) {
    scores = evaluate_unless(ends, *evaluation_graph_, loader, parts_.group, wanted_details);
  } else {
    if (options_.dead_relus) relus.emplace(parts_.model);
    const ForwardFunction forward = relus ? relus->watched(options_.forward) : options_.forward;
    const Scoring scoring(options_.loss, options_.metrics, 0.0,
                          over_views(options_.test_time_augmentation, forward, options_.test_time_share));
    scores = evaluate_unless(ends, parts_.model, loader, parts_.group, scoring, wanted_details);
  }
  const std::int64_t epoch = epochs_done_ + (epoch_step_ > 0 ? 1 : 0);  // or in its middle: a run of so many steps
  if (scores && relus) dead_relus_ = relus->dead_relus(parts_.group);
  if (scores && options_.detailed) evaluated_ = {split, epoch, scores->metrics, std::move(details)};
  return scores;
}

EvaluationReport Trainer::evaluation_report() {
  require(evaluated_.has_value(),
          "trainer: there is no evaluation to report: set TrainerOptions::detailed, and train or "
          "evaluate first");
  EvaluationReport report = evaluated_->details.report(parts_.group);
  report.split = evaluated_->split;
  report.epoch = evaluated_->epoch;
  report.loss = evaluated_->metrics.loss();
  report.accuracy = evaluated_->metrics.accuracy();
  return report;
}

/// Buffers are a rank's own while an epoch goes, and so are their averages: rank 0's are the model's.
void Trainer::sync_averages() {
  if ((!ema_ && !lookahead_) || parts_.group.size() == 1) return;
  const NamedTensors buffers = parts_.model.named_buffers();
  for (const auto& [name, average] : ema_ ? ema_->averages() : lookahead_->slow_weights()) {
    const bool is_buffer =
        std::any_of(buffers.begin(), buffers.end(), [&, &own = name](const auto& b) { return b.first == own; });
    if (is_buffer) parts_.group.broadcast(Out(average));
  }
}

NamedTensors Trainer::weights() const {
  return ema_ ? ema_->averages() : full_state_dict(parts_.model, parts_.optimizer);
}

/// Counts the epoch, and says whether it is the last.
void Trainer::fill_in_best(EpochRecord& record) {
  best_epoch_.add(record);
  uncounted_step_ = -1;
  record.best = best_epoch_.best();
  record.stopped_early = best_epoch_.should_stop();
}

/// Time and memory; the next epoch's time counts from here.
void Trainer::fill_in_costs(EpochRecord& record) {
  record.layers = layer_norms_;
  record.dead_relus = dead_relus_;
  record.time = phases_.times();
  phases_.start();
  const comm::ExchangeTotals totals = parts_.replicas.take_totals();
  if (totals.steps > 0) record.exchange = totals;
  if (totals.window_seconds > 0.0) record.exchange_window = totals.window_seconds;
  const std::vector<Tensor>& parameters = parts_.optimizer.parameters();
  record.memory = peak_tensor_memory(parameters.empty() ? Device{} : parameters.front().device());
}

void Trainer::fill_in_circumstances(EpochRecord& record) {
  record.loss_scale = parts_.scaler.scale();
  record.skipped_steps = skipped_steps();
  record.world_size = parts_.group.size();
  record.backend = parts_.group.name();
  record.peak_memory_bytes =
      static_cast<std::int64_t>(max_over_ranks(static_cast<double>(peak_memory_bytes()), parts_.group));
}

EpochRecord Trainer::evaluate_only(const TrainObserver& observer) {
  const auto start = std::chrono::steady_clock::now();
  EpochRecord last;
  last.trained = false;
  last.epoch = epochs_done_ + (epoch_step_ > 0 ? 1 : 0);  // or in its middle, where a run of so many steps ended
  last.lr = parts_.optimizer.lr();
  last.train_loss = last.train_accuracy = last.test_loss = last.test_accuracy = std::nan("");
  may_stop_ = max_over_ranks(observer.stop ? 1.0 : 0.0, parts_.group) > 0.0;
  last.stopped =
      !fill_in_evaluation(last, observer) || (parts_.validation_loader != nullptr && !fill_in_test(last, observer));
  fill_in_circumstances(last);
  last.best = best_epoch_.best();
  last.stopped_early = best_epoch_.should_stop();
  last.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return last;
}

}  // namespace tandem::train
