// Trainer: synchronous SGD over all ranks, epoch by epoch.
#pragma once

#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/records.h"

#include <functional>
#include <memory>

namespace tandem::train {

struct TrainerOptions {
  std::int64_t epochs = 1;
  /// Micro-batches (batches of the training loader) per optimizer step; only the last one exchanges gradients. A step
  /// is as many images as they hold.
  std::int64_t accumulation = 1;
  double clip_norm = 0.0;  ///< 0: gradients are not clipped
  double label_smoothing = 0.0;
  bool check_replicas = false;  ///< after each epoch
  std::int64_t log_every = 0;   ///< steps between step records; 0: none
  std::uint64_t seed = 0;       ///< of dropout
};

/// Told how training goes; empty functions are passed over. Figures of `epoch` and `step` are of all ranks, those of
/// `progress` of this rank's share.
struct TrainObserver {
  std::function<void()> first_step;
  std::function<void(const Progress&)> progress;
  std::function<void(const StepRecord&)> step;
  std::function<void(const EpochRecord&)> epoch;
};

/// Everything a run is made of; all must outlive the trainer. The schedule gives the learning rate of each step as a
/// factor of the optimizer's rate at construction.
struct TrainingParts {
  layers::Module& model;
  optim::Optimizer& optimizer;
  const optim::Schedule& schedule;
  comm::ProcessGroup& group;
  comm::DistributedDataParallel& replicas;
  data::Loader& train_loader;
  data::Loader& test_loader;
  optim::GradScaler& scaler;
};

/// Optimizer steps in an epoch of this loader; the last one may be of fewer micro-batches.
std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation);

/// Synchronous SGD is exact: the gradient of a step is the mean over the images of all ranks and micro-batches, each
/// image with the same weight, also in an epoch's smaller last step. N ranks thus take the steps that one rank takes
/// with the same global batch, but for rounding (and for batch norm and dropout, which are local to a rank).
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     #include "tandem/data/synthetic.h"
///     #include "tandem/layers/models/models.h"
///     #include "tandem/optim/sgd.h"
///     comm::MpiEnvironment environment;
///     const auto group = comm::make_process_group("auto", environment);
///     const auto images = std::make_shared<const data::Dataset>(data::make_synthetic({.count = 200, .side = 16}));
///     const data::DistributedSampler sampler(images->size(), group->size(), group->rank(), true, 1);
///     data::Loader training(images, sampler, {.global_batch_size = 50}), testing(images, sampler, {});
///     const auto model = layers::make_model({.name = "small_cnn", .image_size = 16});
///     optim::SGD optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
///     comm::DistributedDataParallel replicas(*group, model->named_parameters(), model->named_buffers());
///     const optim::CosineSchedule schedule(2 * 4);  // epochs x steps
///     optim::GradScaler scaler({.mode = optim::LossScaling::none});
///     Trainer trainer({*model, optimizer, schedule, *group, replicas, training, testing, scaler}, {.epochs = 2});
///     const EpochRecord last = trainer.run({});  // last.test_accuracy in percent
class Trainer {
 public:
  /// Gives the model a random state of its own. Throws an AgreedError where check_smallest_part() does. Collective.
  Trainer(const TrainingParts& parts, const TrainerOptions& options);

  /// Trains and evaluates one epoch, numbered from 1. A model in evaluation mode is set to training; in one that is
  /// training, modules set to evaluation stay frozen. Collective, as is all below.
  EpochRecord run_epoch(std::int64_t epoch, const TrainObserver& observer);

  /// All epochs; with none, evaluates only. Returns the last record. Stops early, with a record whose train_loss is not
  /// finite, when the loss is not a finite number any more. Throws Error for a label outside of the model's classes, on
  /// every device.
  EpochRecord run(const TrainObserver& observer);

  std::int64_t steps_per_epoch() const;

 private:
  struct StepSums;

  void run_step(std::int64_t images, std::int64_t micro_batches, StepSums& sums);
  void run_micro_batch(std::int64_t images_in_step, StepSums& sums);
  void fill_in_evaluation(EpochRecord& record);

  TrainingParts parts_;
  TrainerOptions options_;
  std::shared_ptr<layers::RandomState> random_state_;
  double base_lr_;
  std::int64_t step_ = 0;  // over all epochs
};

}  // namespace tandem::train
