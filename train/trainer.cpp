// The training loop.
#include "tandem/train/trainer.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/core/describe.h"
#include "tandem/core/timeline.h"
#include "tandem/train/layer_norms.h"
#include "tandem/train/smallest_part.h"
#include "tandem/train/trainer_checks.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace tandem::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Only f16 gradients vanish without a scale.
optim::LossScaling scaling_for(const optim::Optimizer& optimizer) {
  const auto& parameters = optimizer.parameters();
  const bool any_f16 = std::any_of(parameters.begin(), parameters.end(),
                                   [](const Tensor& parameter) { return parameter.dtype() == DType::f16; });
  return any_f16 ? optim::LossScaling::dynamic : optim::LossScaling::none;
}

/// Epochs that hold so many steps; the last one may be a part.
std::int64_t epochs_of(const data::Loader& loader, const TrainerOptions& options) {
  const std::int64_t in_epoch = steps_per_epoch(loader, options.accumulation);
  require(in_epoch > 0, "trainer: the training loader has no batch");
  return (options.steps - 1) / in_epoch + 1;
}

}  // namespace

struct Trainer::Defaults {
  optim::ConstantSchedule schedule;
  comm::ProcessGroup group{comm::make_self_backend()};
  optim::GradScaler scaler;
  std::unique_ptr<comm::DistributedDataParallel> replicas;

  explicit Defaults(const optim::Optimizer& optimizer) : scaler(scaling_for(optimizer)) {}
};

TrainingParts Trainer::complete(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
                                const TrainerOptions& options, Defaults& defaults) {
  comm::ProcessGroup& group = options.group != nullptr ? *options.group : defaults.group;
  optimizer.begin_step(0);  // what an earlier trainer's last steps had frozen is to be exchanged again
  if (options.replicas == nullptr) {
    defaults.replicas = std::make_unique<comm::DistributedDataParallel>(group, parameters_and_masters(model, optimizer),
                                                                        model.named_buffers());
  }
  return {.model = model,
          .optimizer = optimizer,
          .schedule = options.schedule != nullptr ? *options.schedule : defaults.schedule,
          .group = group,
          .replicas = options.replicas != nullptr ? *options.replicas : *defaults.replicas,
          .train_loader = train_loader,
          .test_loader = options.test,
          .scaler = options.scaler != nullptr ? *options.scaler : defaults.scaler,
          .validation_loader = options.validation};
}

Trainer::Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
                 const TrainerOptions& options)
    : Trainer(model, optimizer, train_loader, options, std::make_shared<Defaults>(optimizer)) {}

Trainer::Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
                 const TrainerOptions& options, const std::shared_ptr<Defaults>& defaults)
    : Trainer(complete(model, optimizer, train_loader, options, *defaults), options, defaults) {}

Trainer::Trainer(const TrainingParts& parts, const TrainerOptions& options) : Trainer(parts, options, nullptr) {}

Trainer::Trainer(const TrainingParts& parts, const TrainerOptions& options, std::shared_ptr<Defaults> defaults)
    : defaults_(std::move(defaults)),
      parts_(parts),
      options_(options),
      buffers_(parts.model.named_buffers()),
      scoring_(options.loss, options.metrics, options.label_smoothing, options.forward,
               parts.train_loader.options().mix.any()),
      test_scoring_(options.loss, options.metrics, 0.0,  // labels are not smoothed
                    over_views(options.test_time_augmentation, options.forward, options.test_time_share)),
      best_epoch_(best_by(parts, options), options.early_stopping),
      random_state_(
          std::make_shared<layers::RandomState>(options.seed, static_cast<std::uint32_t>(parts.group.rank()))),
      base_lr_(parts.optimizer.lr()),
      lr_(base_lr_),
      last_epoch_(options.epochs),
      last_step_(kNoLimit) {
  check_options(options);
  check_sampler("training", parts.train_loader, parts.group);
  check_micro_batches(parts, options);
  if (parts.test_loader != nullptr) check_sampler("test", *parts.test_loader, parts.group);
  if (parts.validation_loader != nullptr) check_sampler("validation", *parts.validation_loader, parts.group);
  comm::check_same(parts.group, "the trainer", shared_text(parts, options));
  if (options.steps > 0) options_.epochs = epochs_of(parts.train_loader, options);
  parts_.model.set_random_state(random_state_);
  if (options_.epochs > 0) {
    comm::run_agreed(parts.group, [&] { check_smallest_part(parts.model, parts.train_loader, options.forward); });
  }
  random_state_->set_step(0);
  if (const int micro_batches = parts_.train_loader.sampler().micro_batches(); micro_batches > 0)
    canonical_.emplace(parts_.group, parts_.optimizer.parameters(), buffers_, micro_batches, options.metrics.size());
  if (options.ema > 0.0) ema_.emplace(full_state_dict(parts.model, parts.optimizer), options.ema, options.ema_options);
  make_graphs();
  if (options.lookahead.every > 0) lookahead_.emplace(parts.model.state_dict(), parts.optimizer, options.lookahead);
}

std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation) {
  const std::int64_t batches = loader.batches();
  return batches / accumulation + (batches % accumulation != 0 ? 1 : 0);
}

std::int64_t steps_in(double epochs, std::int64_t steps_per_epoch) {
  constexpr double kMostSteps = 0x1p53;
  const double steps = epochs * static_cast<double>(steps_per_epoch);
  require(steps_per_epoch >= 0 && steps >= 0.0 && steps <= kMostSteps,
          "trainer: {} epochs of {} steps are no number of steps: give 0 epochs or more", epochs, steps_per_epoch);
  // 1.1 epochs of 10 steps are 11.000000000000002 in doubles: what two roundings may add makes no step.
  return static_cast<std::int64_t>(std::ceil(steps * (1.0 - 0x1p-51)));
}

std::int64_t Trainer::steps_per_epoch() const {
  return train::steps_per_epoch(parts_.train_loader, options_.accumulation);
}

void Trainer::check_buffers() {
  comm::run_agreed(parts_.group, [&] { train::check_buffers(buffers_, parts_.model); });
}

void Trainer::check_optimizer() const {
  const std::vector<Tensor> trained = parts_.model.parameters();
  const auto is_trained = [&](const Tensor& parameter) {
    return std::any_of(trained.begin(), trained.end(), [&](const Tensor& own) { return own.is_same(parameter); });
  };
  const std::vector<Tensor>& parameters = parts_.optimizer.parameters();
  require(std::any_of(parameters.begin(), parameters.end(), is_trained),
          "trainer: none of the optimizer's {} parameters is one of the model's {}: make it of model.parameters(); "
          "register_parameter() and register_module() make parameters known",
          parameters.size(), trained.size());
  if (options_.replicas != nullptr || defaults_ == nullptr || parts_.group.size() == 1) return;
  const auto other = std::find_if_not(parameters.begin(), parameters.end(), is_trained);
  require(other == parameters.end(),
          "trainer: parameter {} of the optimizer, {}, is none of the model's, and its gradient would stay that of one "
          "rank: register it in the model, or give replicas that have it (TrainerOptions::replicas)",
          other - parameters.begin(), other == parameters.end() ? "" : describe(*other));
}

std::int64_t Trainer::images_per_step() const {
  // Neither counts more than an epoch has, so that the product stays in range.
  const data::Loader& loader = parts_.train_loader;
  return std::min(options_.accumulation, loader.batches()) *
         std::min(loader.options().global_batch_size, loader.images_per_epoch());
}

/// Images of an epoch before its `step`-th step, of which 0 is the first.
std::int64_t Trainer::images_before(std::int64_t step) const {
  return std::min(step * images_per_step(), parts_.train_loader.images_per_epoch());
}

void Trainer::report_step(std::int64_t epoch, std::int64_t images, const TrainObserver& observer) {
  if (options_.log_every == 0 || step_ % options_.log_every != 0) return;
  const Metrics all = sum_over_ranks({epoch_scores_.step_loss(), 0, 0}, parts_.group);
  phases_.end(&PhaseTimes::communication);
  all_know_ = all_know_ || !std::isfinite(all.loss_sum);
  if (!observer.step) return;
  observer.step({.step = step_,
                 .epoch = epoch,
                 .lr = parts_.optimizer.lr(),
                 .loss = all.loss_sum / static_cast<double>(images),
                 .loss_scale = loss_scale_,
                 .skipped_steps = skipped_steps()});
}

/// Steps of the epoch in work: all, or those up to the run's last one.
std::int64_t Trainer::steps_until_pause() const {
  const std::int64_t left = std::max<std::int64_t>(last_step_ - step_, 0);  // near the largest number without a limit
  return epoch_step_ + std::min(steps_per_epoch() - epoch_step_, left);
}

/// Up to the end of run() or fit(), those before it included.
std::int64_t Trainer::steps_in_all() const { return std::min(last_step_, last_epoch_ * steps_per_epoch()); }

/// The steps of an epoch, or those that are left of it.
Trainer::StepsEnd Trainer::run_steps(std::int64_t epoch, const TrainObserver& observer) {
  const auto start = Clock::now();
  const std::int64_t batches = parts_.train_loader.batches();
  const std::int64_t steps = steps_until_pause();
  if (step_graph_) step_graph_->look_at_model();  // the program may have added modules
  parts_.train_loader.start(static_cast<std::uint32_t>(epoch - 1), epoch_step_ * options_.accumulation,
                            step_graph_ != nullptr);
  while (epoch_step_ < steps) {
    const auto begin = phases_.last();
    const std::int64_t images = images_before(epoch_step_ + 1) - images_before(epoch_step_);
    const bool is_last = epoch_step_ + 1 == steps, ends_run = epoch == last_epoch_ || step_ + 1 >= last_step_;
    run_step(images, std::min(options_.accumulation, batches - epoch_step_ * options_.accumulation),
             !is_last    ? StepPlace::in_epoch
             : !ends_run ? StepPlace::ends_epoch
                         : StepPlace::ends_run);
    if (timeline_is_recorded()) [[unlikely]]
      detail::add_to_timeline(detail::timeline_event(fmt::format("step {}", step_), begin, phases_.last() - begin));
    if (step_ >= last_step_ && epoch_step_ < steps_per_epoch()) uncounted_step_ = step_;
    if (!std::exchange(has_begun_, true)) {
      check_buffers();
      if (observer.first_step) observer.first_step();
    }
    report_step(epoch, images, observer);
    if (observer.progress) {
      observer.progress({.epoch = epoch,
                         .epochs = last_epoch_,
                         .step = epoch_step_,
                         .steps = steps,
                         .images = images_before(epoch_step_),
                         .seconds = seconds_since(start),
                         .loss = epoch_scores_.known().metrics.loss(),
                         .accuracy = scoring_.accuracy(epoch_scores_.known().metrics)});
    }
    phases_.end(&PhaseTimes::writing);
    const StepsEnd end = end_of_step(observer);
    phases_.end(&PhaseTimes::communication);
    if (end != StepsEnd::complete) return end;
  }
  return StepsEnd::complete;
}

EpochRecord Trainer::run_epoch(std::int64_t epoch, const TrainObserver& observer) {
  const auto start = Clock::now();
  require(steps_per_epoch() > 0, "trainer: the training loader has no batch: its data set is empty");
  check_optimizer();
  if (has_begun_)
    phases_.end(&PhaseTimes::writing);
  else
    phases_.start();
  if (!std::exchange(is_resumed_, false) || epoch != epochs_done_ + 1) {
    epoch_step_ = 0;
    epoch_scores_.reset();
    epoch_seconds_before_ = 0.0;
  }
  epoch_start_ = start;
  layer_norms_.clear();
  dead_relus_.clear();
  epoch_scores_.forget_bad_step();
  all_know_ = false;
  may_stop_ = max_over_ranks(observer.stop ? 1.0 : 0.0, parts_.group) > 0.0;
  phases_.end(&PhaseTimes::communication);
  const std::int64_t images_done = images_before(epoch_step_), steps_done = step_;
  if (!parts_.model.training()) parts_.model.train();
  EpochRecord record;
  record.epoch = epoch;
  StepsEnd end = run_steps(epoch, observer);
  record.steps = step_ - steps_done;
  record.lr = parts_.optimizer.lr();
  const Scores all = scoring_.sum_over_ranks(own_scores(), parts_.group);
  record.train_loss = all.metrics.loss();
  record.train_accuracy = scoring_.accuracy(all.metrics);
  record.train_metrics = scoring_.values(all);
  record.images_per_second = static_cast<double>(images_before(epoch_step_) - images_done) / seconds_since(start);
  if (!std::isfinite(record.train_loss)) end = StepsEnd::diverged;
  if (end == StepsEnd::diverged) record.diverged = divergence();
  phases_.end(&PhaseTimes::communication);
  record.test_loss = record.test_accuracy = std::nan("");
  bool is_whole = end == StepsEnd::complete;
  if (is_whole && is_evaluated(epoch)) {
    is_whole = fill_in_evaluation(record, observer);
  } else if (is_whole) {
    sync_replicas();
  }
  fill_in_circumstances(record);
  if (!is_whole) {
    record.stopped = !record.diverged;
    is_resumed_ = true;
    record.best = best_epoch_.best();
    record.seconds = end_epoch_time();
    return record;
  }
  phases_.end(&PhaseTimes::evaluation);
  fill_in_best(record);
  fill_in_costs(record);
  record.seconds = end_epoch_time();
  if (epoch_step_ < steps_per_epoch()) {  // the run's last step: another may go on in this epoch
    epochs_done_ = epoch - 1;
    is_resumed_ = true;
    return record;
  }
  epochs_done_ = epoch;
  epoch_step_ = 0;
  epoch_scores_.reset();
  epoch_seconds_before_ = 0.0;
  return record;
}

double Trainer::epoch_seconds() const {
  return epoch_seconds_before_ + (epoch_start_ ? seconds_since(*epoch_start_) : 0.0);
}

/// Stops the clock of the epoch in work, which may be gone on with.
double Trainer::end_epoch_time() {
  epoch_seconds_before_ = epoch_seconds();
  epoch_start_.reset();
  return epoch_seconds_before_;
}

EpochRecord Trainer::run(const TrainObserver& observer) {
  const std::int64_t before = is_resumed_ ? 0 : step_;
  last_step_ = options_.steps > 0 ? before + options_.steps : kNoLimit;
  if (!is_resumed_) best_epoch_ = BestEpoch(best_by(parts_, options_), options_.early_stopping);
  const std::int64_t first = is_resumed_ ? epochs_done_ + 1 : 1;
  const bool is_paused =
      epoch_step_ > 0 && epoch_step_ < steps_per_epoch() && step_ >= last_step_ && uncounted_step_ != step_;
  const bool has_ended = first > options_.epochs || best_epoch_.should_stop() || (is_resumed_ && is_paused);
  return has_ended ? evaluate_only(observer) : run_epochs(first, options_.epochs, observer);
}

EpochRecord Trainer::fit(std::int64_t epochs, const TrainObserver& observer) {
  require(epochs >= 1, "trainer: fit() needs one epoch or more, got {}; evaluate() tests a model", epochs);
  last_step_ = kNoLimit;
  return run_epochs(epochs_done_ + 1, epochs_done_ + epochs, observer);
}

EpochRecord Trainer::run_epochs(std::int64_t first, std::int64_t last, const TrainObserver& observer) {
  comm::check_same(parts_.group, "training", fmt::format("epochs={} to {}\n", first, last));
  last_epoch_ = last;
  phases_.start();
  EpochRecord record;
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    record = run_epoch(epoch, observer);
    if (record.stopped) return record;
    if (observer.epoch) observer.epoch(record);
    if (record.diverged) return record;
    if (record.stopped_early) break;
    const bool ends = observer.keep_going && !observer.keep_going(record);
    if (max_over_ranks(ends ? 1.0 : 0.0, parts_.group) > 0.0) break;
  }
  if (parts_.validation_loader != nullptr && !fill_in_test(record, observer)) record.stopped = is_resumed_ = true;
  return record;
}

}  // namespace tandem::train
