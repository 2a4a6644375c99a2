// The training loop.
#include "tandem/train/trainer.h"

#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/process_info.h"
#include "tandem/train/smallest_part.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>

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

}  // namespace

struct Trainer::StepSums {
  Scores epoch;            // this rank, since the epoch began
  double step_loss = 0.0;  // sum over this rank's images of the step
};

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
  parts_.model.set_random_state(random_state_);
  if (options.epochs > 0) {
    comm::run_agreed(parts.group, [&] { check_smallest_part(parts.model, parts.train_loader, options.forward); });
  }
  random_state_->set_step(0);
}

std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation) {
  return (loader.batches() + accumulation - 1) / accumulation;
}

std::int64_t Trainer::steps_per_epoch() const {
  return train::steps_per_epoch(parts_.train_loader, options_.accumulation);
}

void Trainer::run_micro_batch(std::int64_t images_in_step, StepSums& sums) {
  const auto batch = parts_.train_loader.next();
  require(batch.has_value(), "trainer: the loader ended before the epoch");
  random_state_->advance();
  // A small last batch may leave nothing for this rank: it then only takes part in the exchange.
  if (batch->count() == 0) return;
  const Tensor output = scoring_.output(parts_.model, *batch);
  const Tensor loss = scoring_.loss(output, batch->labels);
  // Gradients are averaged over ranks with equal weights, so a rank's mean loss counts by its share of the step's
  // images, times ranks.
  const double share = static_cast<double>(batch->count()) / static_cast<double>(images_in_step);
  const double start = share * parts_.group.size() * parts_.scaler.scale();
  autograd::backward(loss, Tensor::full(loss.shape(), start, loss.options()));
  const double mean = scoring_.add(sums.epoch, loss, output, batch->labels, batch->count());
  sums.step_loss += mean * static_cast<double>(batch->count());
}

void Trainer::run_step(std::int64_t images, std::int64_t micro_batches, StepSums& sums) {
  parts_.optimizer.zero_grad();
  sums.step_loss = 0.0;
  for (std::int64_t i = 0; i + 1 < micro_batches; ++i) {
    const auto no_sync = parts_.replicas.no_sync();
    run_micro_batch(images, sums);
  }
  run_micro_batch(images, sums);
  parts_.replicas.finish();
  parts_.scaler.unscale(parts_.optimizer);
  if (options_.clip_norm > 0.0) optim::clip_grad_norm(parts_.optimizer, options_.clip_norm);
  parts_.optimizer.set_lr(base_lr_ * parts_.schedule.lr_factor(static_cast<double>(step_)));
  parts_.scaler.step(parts_.optimizer);
  parts_.scaler.update();
  ++step_;
}

EpochRecord Trainer::run_epoch(std::int64_t epoch, const TrainObserver& observer) {
  const auto start = Clock::now();
  const std::int64_t steps = steps_per_epoch();
  require(steps > 0, "trainer: the training loader has no batch");
  const std::int64_t batches = parts_.train_loader.batches();
  const std::int64_t images_per_epoch = parts_.train_loader.images_per_epoch();
  const std::int64_t images_per_step = options_.accumulation * parts_.train_loader.options().global_batch_size;
  StepSums sums;
  Progress progress{.epoch = epoch, .epochs = last_epoch_, .steps = steps};
  if (!parts_.model.training()) parts_.model.train();
  parts_.train_loader.start(static_cast<std::uint32_t>(epoch - 1));
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t images = std::min(images_per_step, images_per_epoch - progress.images);
    const double scale = parts_.scaler.scale();
    run_step(images, std::min(options_.accumulation, batches - step * options_.accumulation), sums);
    if (step_ == 1 && observer.first_step) observer.first_step();
    if (options_.log_every > 0 && step_ % options_.log_every == 0) {
      const Metrics all = sum_over_ranks({sums.step_loss, 0, 0}, parts_.group);
      if (observer.step) {
        observer.step({.step = step_,
                       .epoch = epoch,
                       .lr = parts_.optimizer.lr(),
                       .loss = all.loss_sum / static_cast<double>(images),
                       .loss_scale = scale,
                       .skipped_steps = parts_.scaler.skipped_steps()});
      }
    }
    progress.step = step + 1;
    progress.images += images;
    progress.seconds = seconds_since(start);
    progress.loss = sums.epoch.metrics.loss();
    progress.accuracy = scoring_.accuracy(sums.epoch.metrics);
    if (observer.progress) observer.progress(progress);
  }
  EpochRecord record;
  record.epoch = epoch;
  record.lr = parts_.optimizer.lr();
  const Scores all = scoring_.sum_over_ranks(sums.epoch, parts_.group);
  record.train_loss = all.metrics.loss();
  record.train_accuracy = scoring_.accuracy(all.metrics);
  record.train_metrics = scoring_.values(all);
  record.images_per_second = static_cast<double>(images_per_epoch) / seconds_since(start);
  fill_in_evaluation(record);
  record.seconds = seconds_since(start);
  epochs_done_ = epoch;
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
  record.loss_scale = parts_.scaler.scale();
  record.skipped_steps = parts_.scaler.skipped_steps();
  record.world_size = parts_.group.size();
  record.backend = parts_.group.name();
  record.peak_memory_bytes =
      static_cast<std::int64_t>(max_over_ranks(static_cast<double>(peak_memory_bytes()), parts_.group));
}

EpochRecord Trainer::run(const TrainObserver& observer) {
  if (options_.epochs > 0) return run_epochs(1, options_.epochs, observer);
  const auto start = Clock::now();
  EpochRecord last;
  last.lr = base_lr_;
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
  last_epoch_ = last;
  EpochRecord record;
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    record = run_epoch(epoch, observer);
    if (observer.epoch) observer.epoch(record);
    if (!std::isfinite(record.train_loss)) break;
    if (observer.keep_going && max_over_ranks(observer.keep_going(record) ? 0.0 : 1.0, parts_.group) > 0.0) break;
  }
  return record;
}

}  // namespace tandem::train
