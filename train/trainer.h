// Trainer: synchronous SGD over all ranks, epoch by epoch.
#pragma once

#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/forward.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/records.h"
#include "tandem/train/scoring.h"

#include <functional>
#include <memory>

namespace tandem::train {

/// What a Trainer may be told; all has a default. What is pointed to must outlive the trainer.
struct TrainerOptions {
  data::Loader* test = nullptr;               ///< evaluated after each epoch; null: no evaluation
  const optim::Schedule* schedule = nullptr;  ///< in steps, as a factor of the optimizer's rate; null: constant
  comm::ProcessGroup* group = nullptr;        ///< the ranks; null: this process alone
  LossFunction loss = {};                     ///< empty: cross-entropy
  std::vector<Metric> metrics = {};           ///< reported beside the loss, of training and test
  optim::GradScaler* scaler = nullptr;        ///< null: scales dynamically if there are f16 parameters, else not
  comm::DistributedDataParallel* replicas = nullptr;  ///< null: one with its default options
  std::int64_t epochs = 1;                            ///< of run()
  /// Micro-batches (batches of the training loader) per optimizer step; only the last one exchanges gradients. A step
  /// is as many images as they hold.
  std::int64_t accumulation = 1;
  double clip_norm = 0.0;  ///< 0: gradients are not clipped
  double label_smoothing = 0.0;
  bool check_replicas = false;   ///< after each epoch
  std::int64_t log_every = 0;    ///< steps between step records; 0: none
  std::uint64_t seed = 0;        ///< of dropout
  ForwardFunction forward = {};  ///< of models that take more than a batch's first tensor; empty: model(batch.images)
};

/// Told how training goes; empty functions are passed over. epoch_text() (console.h) makes a line of an EpochRecord.
/// Figures of `epoch` and `step` are of all ranks, those of `progress` of this rank's share. `keep_going` is asked
/// after `epoch`, and training ends where a rank says false: give it on all ranks or on none.
struct TrainObserver {
  std::function<void()> first_step = {};
  std::function<void(const Progress&)> progress = {};
  std::function<void(const StepRecord&)> step = {};
  std::function<void(const EpochRecord&)> epoch = {};
  std::function<bool(const EpochRecord&)> keep_going = {};
};

/// Everything a run is made of, for a program that makes it all itself; all must outlive the trainer. The schedule
/// gives the learning rate of each step as a factor of the optimizer's rate at construction.
struct TrainingParts {
  layers::Module& model;
  optim::Optimizer& optimizer;
  const optim::Schedule& schedule;
  comm::ProcessGroup& group;
  comm::DistributedDataParallel& replicas;
  data::Loader& train_loader;
  data::Loader* test_loader;  ///< null: no evaluation
  optim::GradScaler& scaler;
};

/// Optimizer steps in an epoch of this loader; the last one may be of fewer micro-batches.
std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation);

/// Synchronous SGD is exact: the gradient of a step is the mean over the images of all ranks and micro-batches, each
/// image with the same weight, also in an epoch's smaller last step. N ranks thus take the steps that one rank takes
/// with the same global batch, but for rounding (and for batch norm and dropout, which are local to a rank).
///
/// Of whatever data set the batches are: the model computes of a batch's first tensor (or what TrainerOptions::forward
/// says), and the loss holds that against its last. A stream needs a size. "Images" are examples of any kind.
/// Example:
///     #include "tandem/data/synthetic.h"
///     #include "tandem/layers/models/models.h"
///     #include "tandem/optim/sgd.h"
///     const data::ImageDataset images = data::make_synthetic({.count = 200, .side = 16});
///     const data::DistributedSampler sampler(images.size(), 1, 0, true, 1);  // of one rank
///     data::Loader training(images, sampler, {.global_batch_size = 50}), testing(images, sampler, {});
///     const auto model = layers::make_model({.name = "small_cnn", .image_size = 16});
///     optim::SGD optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
///     const optim::CosineSchedule schedule(2 * 4);  // epochs x steps
///     Trainer trainer(*model, optimizer, training, {.test = &testing, .schedule = &schedule});
///     const EpochRecord last = trainer.fit(2);  // last.test_accuracy in percent
class Trainer {
 public:
  /// Gives the model a random state of its own. What `options` leaves out is made here: rank 0's parameters go to all
  /// ranks. model, optimizer and loader must outlive the trainer. Throws Error for options out of range and where a
  /// loader's sampler is of other ranks than the group, an AgreedError where check_smallest_part() does. Collective.
  Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
          const TrainerOptions& options = {});
  /// The same of parts that are all there: those of `options` are not looked at.
  Trainer(const TrainingParts& parts, const TrainerOptions& options);

  /// Trains and evaluates one epoch, numbered from 1. A model in evaluation mode is set to training; in one that is
  /// training, modules set to evaluation stay frozen. Collective, as is all below.
  EpochRecord run_epoch(std::int64_t epoch, const TrainObserver& observer);

  /// All epochs; with none, evaluates only. Returns the last record. Stops early, with a record whose train_loss is not
  /// finite, when the loss is not a finite number any more. Throws Error for a label outside of the model's classes, on
  /// every device.
  EpochRecord run(const TrainObserver& observer);

  /// `epochs` more epochs, numbered on from those that this trainer has done; returns the last record, and ends early
  /// as run() does.
  EpochRecord fit(std::int64_t epochs, const TrainObserver& observer = {});

  std::int64_t steps_per_epoch() const;

 private:
  struct StepSums;
  struct Defaults;

  Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader, const TrainerOptions& options,
          const std::shared_ptr<Defaults>& defaults);
  Trainer(const TrainingParts& parts, const TrainerOptions& options, std::shared_ptr<Defaults> defaults);
  static TrainingParts complete(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
                                const TrainerOptions& options, Defaults& defaults);

  EpochRecord run_epochs(std::int64_t first, std::int64_t last, const TrainObserver& observer);

  void run_step(std::int64_t images, std::int64_t micro_batches, StepSums& sums);
  void run_micro_batch(std::int64_t images_in_step, StepSums& sums);
  void fill_in_evaluation(EpochRecord& record);

  std::shared_ptr<Defaults> defaults_;  // parts that were not given
  TrainingParts parts_;
  TrainerOptions options_;
  Scoring scoring_, test_scoring_;
  std::shared_ptr<layers::RandomState> random_state_;
  double base_lr_;
  std::int64_t last_epoch_;       // of run() or fit(), for progress
  std::int64_t step_ = 0;         // over all epochs
  std::int64_t epochs_done_ = 0;  // the number of the last one
};

}  // namespace tandem::train
