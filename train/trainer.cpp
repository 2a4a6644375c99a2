// The training loop.
#include "tandem/train/trainer.h"

#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/core/describe.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/process_info.h"
#include "tandem/train/smallest_part.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace tandem::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Only f16 gradients vanish without a scale.
optim::LossScaling scaling_for(const optim::Optimizer& optimizer) {
  const auto& parameters = optimizer.parameters();
  const bool any_f16 = std::any_of(parameters.begin(), parameters.end(),
                                   [](const Tensor& parameter) { return parameter.dtype() == DType::f16; });
  return any_f16 ? optim::LossScaling::dynamic : optim::LossScaling::none;
}

void check_options(const TrainerOptions& options) {
  require(options.epochs >= 0 && options.accumulation >= 1, "trainer: {} epochs of {} micro-batches make no sense",
          options.epochs, options.accumulation);
  require(std::isfinite(options.l1) && options.l1 >= 0.0,
          "trainer: l1 {} must be a finite number, 0 (no penalty) or more", options.l1);
  require(options.clip_norm >= 0.0, "trainer: clip_norm {} must be 0 (no clipping) or more", options.clip_norm);
  require(options.log_every >= 0, "trainer: log_every {} must be 0 (never) or more", options.log_every);
  require(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
          "trainer: label_smoothing {} is not between 0 and 1", options.label_smoothing);
  require(options.replicas == nullptr || options.group != nullptr,
          "trainer: replicas are given without their group; give .group, too");
}

/// Throws Error where a loader hands out the parts of other ranks than the group's.
void check_sampler(std::string_view which, const data::Loader& loader, const comm::ProcessGroup& group) {
  const data::DistributedSampler& sampler = loader.sampler();
  require(sampler.world_size() == group.size() && sampler.rank() == group.rank(),
          "trainer: the {} loader's sampler is that of rank {} of {}, but this is rank {} of {}; make both of one "
          "process group (TrainerOptions::group)",
          which, sampler.rank(), sampler.world_size(), group.rank(), group.size());
}

/// "training=given\ntraining.examples=60000\n...": which batches a loader makes of which examples.
std::string text_of(std::string_view which, const data::Loader* loader) {
  if (loader == nullptr) return fmt::format("{}=none\n", which);
  const data::DistributedSampler& sampler = loader->sampler();
  const std::string order = sampler.shuffles() ? fmt::format("shuffled by seed {}", sampler.seed()) : "as they come";
  return fmt::format("{0}=given\n{0}.examples={1}\n{0}.order={2}\n{0}.global_batch_size={3}\n{0}.drop_last={4}\n",
                     which, sampler.size(), order, loader->options().global_batch_size, loader->options().drop_last);
}

/// What must be the same on all ranks: else they would wait for each other in different places, or take different
/// steps.
std::string text_of(const TrainingParts& parts, const TrainerOptions& options) {
  std::string metrics;
  for (const Metric& metric : options.metrics) metrics += (metrics.empty() ? "" : ", ") + metric.name;
  return text_of("training", &parts.train_loader) + text_of("test", parts.test_loader) +
         fmt::format(
             "lr={}\nepochs={}\naccumulation={}\nclip_norm={}\nl1={}\ncheck_replicas={}\nlog_every={}\nmetrics={}\n",
             parts.optimizer.lr(), options.epochs, options.accumulation, options.clip_norm, options.l1,
             options.check_replicas, options.log_every, metrics.empty() ? "none" : metrics);
}

/// Where an error is on its way already.
void complete_exchange(comm::DistributedDataParallel& replicas) {
  try {
    replicas.finish();
  } catch (const Error&) {  // another rank is gone: that error is not the first
    return;
  }
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
          .scaler = options.scaler != nullptr ? *options.scaler : defaults.scaler};
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
      scoring_(options.loss, options.metrics, options.label_smoothing, options.forward),
      test_scoring_(options.loss, options.metrics, 0.0, options.forward),  // labels are not smoothed
      random_state_(
          std::make_shared<layers::RandomState>(options.seed, static_cast<std::uint32_t>(parts.group.rank()))),
      base_lr_(parts.optimizer.lr()),
      last_epoch_(options.epochs) {
  check_options(options);
  check_sampler("training", parts.train_loader, parts.group);
  if (parts.test_loader != nullptr) check_sampler("test", *parts.test_loader, parts.group);
  comm::check_same(parts.group, "the trainer", text_of(parts, options));
  parts_.model.set_random_state(random_state_);
  if (options.epochs > 0) {
    comm::run_agreed(parts.group, [&] { check_smallest_part(parts.model, parts.train_loader, options.forward); });
  }
  random_state_->set_step(0);
}

std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation) {
  const std::int64_t batches = loader.batches();
  return batches / accumulation + (batches % accumulation != 0 ? 1 : 0);
}

std::int64_t Trainer::steps_per_epoch() const {
  return train::steps_per_epoch(parts_.train_loader, options_.accumulation);
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

void Trainer::run_micro_batch(std::int64_t images_in_step, bool is_last) {
  const auto batch = parts_.train_loader.next();
  require(batch.has_value(), "trainer: the loader ended before the epoch");
  random_state_->advance();
  // A small last batch may leave nothing for this rank: it then only takes part in the exchange.
  if (batch->count() == 0) return;
  const Tensor output = scoring_.output(parts_.model, *batch);
  const Tensor loss = scoring_.loss(output, batch->labels);
  require(autograd::requires_grad(loss),
          "trainer: the loss does not depend on any parameter that wants a gradient: are all of them frozen "
          "(Module::requires_grad()), or does the loss function detach the output?");
  // Gradients are averaged over ranks with equal weights, so a rank's mean loss counts by its share of the step's
  // images, times ranks.
  const double share = static_cast<double>(batch->count()) / static_cast<double>(images_in_step);
  const double start = share * parts_.group.size() * parts_.scaler.scale();
  autograd::backward(loss, Tensor::full(loss.shape(), start, loss.options()));
  try {
    const double mean = scoring_.add(epoch_scores_, loss, output, batch->labels, batch->count());
    step_loss_ += mean * static_cast<double>(batch->count());
  } catch (...) {
    // Backward has begun the exchange of the last micro-batch, which other ranks complete: the replicas are then ready
    // for another step.
    if (is_last) complete_exchange(parts_.replicas);
    throw;
  }
}

void Trainer::run_step(std::int64_t images, std::int64_t micro_batches) {
  parts_.optimizer.zero_grad();
  step_loss_ = 0.0;
  for (std::int64_t i = 0; i + 1 < micro_batches; ++i) {
    const auto no_sync = parts_.replicas.no_sync();
    run_micro_batch(images, false);
  }
  run_micro_batch(images, true);
  parts_.replicas.finish();
  if (options_.l1 > 0.0) optim::add_l1_gradient(parts_.optimizer.parameters(), options_.l1 * parts_.scaler.scale());
  parts_.scaler.unscale(parts_.optimizer);
  if (options_.clip_norm > 0.0) optim::clip_grad_norm(parts_.optimizer, options_.clip_norm);
  parts_.optimizer.set_lr(base_lr_ * parts_.schedule.lr_factor(static_cast<double>(step_)));
  parts_.scaler.step(parts_.optimizer);
  parts_.scaler.update();
  ++step_;
  ++epoch_step_;
}

void Trainer::report_step(const StepRecord& step, std::int64_t images, const TrainObserver& observer) {
  if (options_.log_every == 0 || step_ % options_.log_every != 0) return;
  const Metrics all = sum_over_ranks({step_loss_, 0, 0}, parts_.group);
  if (!observer.step) return;
  StepRecord record = step;
  record.loss = all.loss_sum / static_cast<double>(images);
  observer.step(record);
}

/// The steps of an epoch, or those that are left of it. False if the observer ended them.
bool Trainer::run_steps(std::int64_t epoch, const TrainObserver& observer) {
  const auto start = Clock::now();
  const std::int64_t steps = steps_per_epoch(), batches = parts_.train_loader.batches();
  const bool may_stop = max_over_ranks(observer.stop ? 1.0 : 0.0, parts_.group) > 0.0;  // some rank asks each step
  parts_.train_loader.start(static_cast<std::uint32_t>(epoch - 1), epoch_step_ * options_.accumulation);
  while (epoch_step_ < steps) {
    const std::int64_t images = images_before(epoch_step_ + 1) - images_before(epoch_step_);
    const double scale = parts_.scaler.scale();
    run_step(images, std::min(options_.accumulation, batches - epoch_step_ * options_.accumulation));
    if (!std::exchange(has_begun_, true) && observer.first_step) observer.first_step();
    report_step({.step = step_,
                 .epoch = epoch,
                 .lr = parts_.optimizer.lr(),
                 .loss_scale = scale,
                 .skipped_steps = skipped_steps()},
                images, observer);
    if (observer.progress) {
      observer.progress({.epoch = epoch,
                         .epochs = last_epoch_,
                         .step = epoch_step_,
                         .steps = steps,
                         .images = images_before(epoch_step_),
                         .seconds = seconds_since(start),
                         .loss = epoch_scores_.metrics.loss(),
                         .accuracy = scoring_.accuracy(epoch_scores_.metrics)});
    }
    if (may_stop && max_over_ranks(observer.stop && observer.stop() ? 1.0 : 0.0, parts_.group) > 0.0) return false;
  }
  return true;
}

EpochRecord Trainer::run_epoch(std::int64_t epoch, const TrainObserver& observer) {
  const auto start = Clock::now();
  require(steps_per_epoch() > 0, "trainer: the training loader has no batch");
  check_optimizer();
  if (!std::exchange(is_resumed_, false) || epoch != epochs_done_ + 1) {
    epoch_step_ = 0;
    epoch_scores_ = {};
  }
  const std::int64_t images_done = images_before(epoch_step_);
  if (!parts_.model.training()) parts_.model.train();
  EpochRecord record;
  record.epoch = epoch;
  record.stopped = is_resumed_ = !run_steps(epoch, observer);
  record.lr = parts_.optimizer.lr();
  const Scores all = scoring_.sum_over_ranks(epoch_scores_, parts_.group);
  record.train_loss = all.metrics.loss();
  record.train_accuracy = scoring_.accuracy(all.metrics);
  record.train_metrics = scoring_.values(all);
  record.images_per_second = static_cast<double>(images_before(epoch_step_) - images_done) / seconds_since(start);
  if (record.stopped) {
    record.test_loss = record.test_accuracy = std::nan("");
    fill_in_circumstances(record);
    record.seconds = seconds_since(start);
    return record;
  }
  fill_in_evaluation(record);
  record.seconds = seconds_since(start);
  epochs_done_ = epoch;
  epoch_step_ = 0;
  epoch_scores_ = {};
  return record;
}

void Trainer::fill_in_evaluation(EpochRecord& record) {
  // Batch norm's running statistics differ between ranks, which saw different images: rank 0's are the model's.
  parts_.replicas.sync_buffers();
  if (options_.check_replicas) parts_.replicas.check_replicas();
  record.test_loss = record.test_accuracy = std::nan("");
  if (parts_.test_loader != nullptr) {
    const Scores test = evaluate(parts_.model, *parts_.test_loader, parts_.group, test_scoring_);
    record.test_loss = test.metrics.loss();
    record.test_accuracy = test_scoring_.accuracy(test.metrics);
    record.test_metrics = test_scoring_.values(test);
  }
  fill_in_circumstances(record);
}

void Trainer::fill_in_circumstances(EpochRecord& record) {
  record.loss_scale = parts_.scaler.scale();
  record.skipped_steps = skipped_steps();
  record.world_size = parts_.group.size();
  record.backend = parts_.group.name();
  record.peak_memory_bytes =
      static_cast<std::int64_t>(max_over_ranks(static_cast<double>(peak_memory_bytes()), parts_.group));
}

EpochRecord Trainer::run(const TrainObserver& observer) {
  const std::int64_t first = is_resumed_ ? epochs_done_ + 1 : 1;
  return first <= options_.epochs ? run_epochs(first, options_.epochs, observer) : evaluate_only();
}

EpochRecord Trainer::evaluate_only() {
  const auto start = Clock::now();
  EpochRecord last;
  last.epoch = epochs_done_;
  last.lr = parts_.optimizer.lr();
  last.train_loss = last.train_accuracy = std::nan("");
  fill_in_evaluation(last);
  last.seconds = seconds_since(start);
  return last;
}

EpochRecord Trainer::fit(std::int64_t epochs, const TrainObserver& observer) {
  require(epochs >= 1, "trainer: fit() needs one epoch or more, got {}; evaluate() tests a model", epochs);
  return run_epochs(epochs_done_ + 1, epochs_done_ + epochs, observer);
}

EpochRecord Trainer::run_epochs(std::int64_t first, std::int64_t last, const TrainObserver& observer) {
  comm::check_same(parts_.group, "training", fmt::format("epochs={} to {}\n", first, last));
  last_epoch_ = last;
  EpochRecord record;
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    record = run_epoch(epoch, observer);
    if (record.stopped) break;
    if (observer.epoch) observer.epoch(record);
    if (!std::isfinite(record.train_loss)) break;
    const bool ends = observer.keep_going && !observer.keep_going(record);
    if (max_over_ranks(ends ? 1.0 : 0.0, parts_.group) > 0.0) break;
  }
  return record;
}

}  // namespace tandem::train
