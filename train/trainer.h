// Trainer: synchronous SGD over all ranks, epoch by epoch.
#pragma once

#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/optim/ema.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/best_epoch.h"
#include "tandem/train/canonical_step.h"
#include "tandem/train/evaluation_details.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/forward.h"
#include "tandem/train/phase_times.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/records.h"
#include "tandem/train/running_scores.h"
#include "tandem/train/scoring.h"
#include "tandem/train/skipped_in_a_row.h"
#include "tandem/train/step_graph.h"
#include "tandem/train/test_time_augmentation.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tandem::train {

/// What a Trainer may be told; all has a default. What is pointed to must outlive the trainer.
struct TrainerOptions {
  data::Loader* test = nullptr;  ///< evaluated after each epoch, or with `validation` at the end; null: not evaluated
  data::Loader* validation = nullptr;  ///< evaluated after each epoch, in place of `test`; null: none
  /// In steps, as a factor of the optimizer's rate: that of the trainer's construction, or what the program has set by
  /// Optimizer::set_lr() since, before or between steps; null: constant.
  const optim::Schedule* schedule = nullptr;
  comm::ProcessGroup* group = nullptr;  ///< the ranks; null: this process alone
  LossFunction loss = {};               ///< empty: cross-entropy
  std::vector<Metric> metrics = {};     ///< reported beside the loss, of training, validation and test
  optim::GradScaler* scaler = nullptr;  ///< null: scales dynamically if there are f16 parameters, else not
  comm::DistributedDataParallel* replicas = nullptr;  ///< null: one with its default options
  std::int64_t epochs = 1;                            ///< of run()
  /// Of run(), in place of epochs: it ends behind so many optimizer steps, in the middle of an epoch or not, which is
  /// then evaluated. 0: by epochs. Parts of an epoch make steps by steps_in().
  std::int64_t steps = 0;
  /// Micro-batches (batches of the training loader) per optimizer step; only the last one exchanges gradients. A step
  /// is as many images as they hold.
  std::int64_t accumulation = 1;
  double clip_norm = 0.0;        ///< the largest Euclidean norm of all gradients together; 0: they are not clipped
  double label_smoothing = 0.0;  ///< share of the target that is spread over all classes
  double l1 = 0.0;               ///< weight of an L1 penalty on all parameters: optim::add_l1_gradient()
  /// The decay of a moving average of the weights (optim/ema.h), which is evaluated in their place; 0: none. A step
  /// that is skipped does not count. Batch norm's running statistics are averaged with them.
  double ema = 0.0;
  optim::AverageOptions ema_options = {};  ///< how often it moves, and how it begins
  /// Slow weights (optim/lookahead.h), which the weights return to every lookahead.every steps and at the end of run()
  /// or fit(); `every` 0: none. The decay rises up to that end. A run that ends before, as by early stopping, keeps its
  /// weights. Not with `ema`.
  optim::LookaheadOptions lookahead = {.every = 0};
  /// The views of which evaluations average the outputs; their loss, metrics and details are those of the averages.
  TestTimeAugmentation test_time_augmentation = TestTimeAugmentation::none;
  /// Of the images of each batch, the part that is looked at so: the least sure ones (over_views()).
  double test_time_share = 1.0;
  /// Epochs between two evaluations; the run's last epoch is evaluated anyway. The others' records have no figures of
  /// validation and test. Not with `early_stopping`.
  std::int64_t evaluate_every = 1;
  EarlyStopping early_stopping = {};  ///< by `best_by`
  /// Which figure makes an epoch the best. Nothing: the loss of validation, of test or of training, the first that
  /// there is.
  std::optional<BestBy> best_by = {};
  /// The run ends where a loss scale skips so many steps in a row; 0: never. Halving the scale 40 times leads from the
  /// largest f16 to the smallest one: what still overflows then does so at every scale.
  std::int64_t max_skipped_steps = 40;
  /// Steps and batches of evaluations as CUDA graphs (step_graph.h, evaluation_graph.h). Possible on a GPU for steps
  /// that are one batch each, without an L1 penalty beside a loss scale and metrics of one's own, and for several ranks
  /// where their group can record all-reduces; for evaluations without metrics of one's own, canonical mode
  /// and `dead_relus`, the last of which is no error with CudaGraph::on. Functions of the options are then called alone
  /// for steps and batches that are no launches, of which there are a few.
  CudaGraph cuda_graph = CudaGraph::off;
  bool check_replicas = false;  ///< after each epoch
  /// Keeps the details of the last evaluation, for evaluation_report(): of classes, without a loss function of one's
  /// own.
  bool detailed = false;
  bool layer_norms = false;      ///< in each epoch's record: of its last step
  bool dead_relus = false;       ///< in each epoch's record: of its evaluation
  std::int64_t log_every = 0;    ///< steps between step records; 0: none
  std::uint64_t seed = 0;        ///< of dropout
  ForwardFunction forward = {};  ///< of models that take more than a batch's first tensor; empty: model(batch.images)
};

/// Told how training goes; empty functions are passed over. epoch_text(record) (console.h) makes a line of it.
/// Figures of `epoch` and `step` are of all ranks, those of `progress` of this rank's share (in canonical mode, of
/// all). `keep_going` is asked after `epoch`, and training ends where a rank says false: one rank that has it is
/// enough.
struct TrainObserver {
  std::function<void()> first_step = {};                    ///< after the first step that this trainer takes
  std::function<void(const Progress&)> progress = {};       ///< after each optimizer step
  std::function<void(const StepRecord&)> step = {};         ///< after every TrainerOptions::log_every-th of them
  std::function<void(const EpochRecord&)> epoch = {};       ///< after each epoch, but for one that is `stopped`
  std::function<bool(const EpochRecord&)> keep_going = {};  ///< false ends the run
  /// Asked behind each step and each batch of an evaluation. Where a rank says true, training ends there on all: run()
  /// and fit() return the record of the epoch in work, `stopped`, and the next of them goes on behind the last step; an
  /// evaluation that was left is begun again. One rank that has it is enough.
  std::function<bool()> stop = {};
};

/// Everything a run is made of, for a program that makes it all itself; all must outlive the trainer. The schedule
/// gives the learning rate of each step as a factor of the optimizer's rate (TrainerOptions::schedule).
struct TrainingParts {
  layers::Module& model;                      ///< what is trained
  optim::Optimizer& optimizer;                ///< of its parameters
  const optim::Schedule& schedule;            ///< of the learning rate
  comm::ProcessGroup& group;                  ///< of all ranks
  comm::DistributedDataParallel& replicas;    ///< which exchange the gradients
  data::Loader& train_loader;                 ///< of the training images
  data::Loader* test_loader;                  ///< null: no evaluation
  optim::GradScaler& scaler;                  ///< of the loss
  data::Loader* validation_loader = nullptr;  ///< null: none
};

/// Optimizer steps in an epoch of this loader; the last one may be of fewer micro-batches.
std::int64_t steps_per_epoch(const data::Loader& loader, std::int64_t accumulation);

/// Steps of a run of so many epochs, the last of which may be a part (9.9): rounded up to a whole step. For
/// TrainerOptions::steps. Throws Error for epochs that are negative or make too many steps.
/// Example:
///     const std::int64_t steps = steps_in(9.9, 48);  // 476
std::int64_t steps_in(double epochs, std::int64_t steps_per_epoch);

/// Synchronous SGD is exact: the gradient of a step is the mean over the images of all ranks and micro-batches, each
/// image with the same weight, also in an epoch's smaller last step. N ranks thus take the steps that one rank takes
/// with the same global batch, but for rounding (and for batch norm and dropout, which are local to a rank).
///
/// In canonical mode there is no rounding that depends on the ranks either: where the training loader deals M
/// micro-batches (data::RankShare::micro_batches), a power of two, 1, 2, 4 ... M ranks train the same weights, losses
/// and figures, bit by bit, on any backend. A rank computes its micro-batches one after another, and all sums over them
/// are by one fixed binary tree (comm::MicroBatchSum). Batch norm normalises a micro-batch, dropout draws a mask for
/// each, and running statistics change by the mean over them. It takes more time: micro-batches are small, and
/// gradients are exchanged behind backward: options of `replicas` do not matter. Loaders for evaluation must have the
/// same micro-batches.
///
/// A run can be left after any step and gone on with later, by another process: state_dict() has all that the rest of
/// it depends on, and a trainer of the same parts that was given it by load_state_dict() computes what this one would
/// have computed, bit by bit.
///
/// Of whatever data set the batches are: the model computes of a batch's first tensor (or what TrainerOptions::forward
/// says), and the loss holds that against its last. A stream needs a size. "Images" are examples of any kind.
/// Example:
///     #include "tandem/data/synthetic.h"
///     #include "tandem/layers/models/models.h"
///     #include "tandem/optim/sgd.h"
///     const data::ImageDataset images = data::make_synthetic({.count = 200, .side = 16});
///     data::Loader training(images, {.global_batch_size = 50, .shuffle = true}), testing(images, {});
///     const auto model = layers::make_model({.name = "small_cnn", .image_size = 16});
///     optim::SGD optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
///     const optim::CosineSchedule schedule(2 * 4);  // epochs x steps
///     Trainer trainer(*model, optimizer, training, {.test = &testing, .schedule = &schedule});
///     const EpochRecord last = trainer.fit(2);  // last.test_accuracy in percent
class Trainer {
 public:
  /// Gives the model a random state of its own. What `options` leaves out is made here: rank 0's parameters go to all
  /// ranks. model, optimizer and loader must outlive the trainer. Throws Error for options out of range and where a
  /// loader's sampler is of other ranks than the group, an AgreedError where check_smallest_part() does, and where
  /// ranks were given other loaders or other options, but for `seed`, label smoothing and what functions compute.
  /// Collective.
  Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
          const TrainerOptions& options = {});
  /// The same of parts that are all there: those of `options` are not looked at.
  Trainer(const TrainingParts& parts, const TrainerOptions& options);

  /// Trains one epoch, numbered from 1, and evaluates it: on validation where there is that, else on test. A model in
  /// evaluation mode is set to training; in one that is training, modules set to evaluation stay frozen. Throws Error
  /// where none of the model's parameters is the optimizer's, and on several ranks where the optimizer has others,
  /// whose gradients no replicas exchange. What a loss, a metric or an observer throws leaves the trainer usable where
  /// all ranks throw it; but a label outside of the classes is told up to three steps later on a GPU, by when it has
  /// made the weights NaN. Throws AgreedError where forward() has put another tensor in the place of a buffer
  /// (Module::register_buffer()). Collective.
  EpochRecord run_epoch(std::int64_t epoch, const TrainObserver& observer);

  /// All epochs, or after load_state_dict() those that are left; with none, evaluates only. Returns the last record,
  /// which has figures of test also where only validation was evaluated before. Early stopping counts from here.
  /// Ends early, with a record that is `diverged`, where the loss of a step is not finite or too many steps in a row
  /// are skipped (TrainerOptions::max_skipped_steps); the observer is given that record, too. Ranks that have an
  /// observer's `stop` on one of them end behind that very step, on a GPU up to three steps later; others behind the
  /// next step record, or with the epoch. Throws Error for a label outside of the model's classes, on every device.
  /// Collective.
  EpochRecord run(const TrainObserver& observer);

  /// `epochs` more epochs, numbered on from those that this trainer has done; the first may be one that was left in its
  /// middle. Returns the last record, and ends early as run() does. Throws Error unless `epochs` >= 1. Collective.
  EpochRecord fit(std::int64_t epochs, const TrainObserver& observer = {});

  /// Takes so many steps of the first epoch, or all of it if it has fewer, evaluates a batch (three, where such are to
  /// be CUDA graphs, which are kept), and puts everything back: what follows has the same bits as without. Then kernels
  /// are loaded and chosen and memory is there, so that the time of the first steps is that of the others. Before run()
  /// or fit(); nothing is reported. Functions of the options are called as in any step, and so are hooks and observers
  /// of modules (make a NanFinder behind it); the scaler's skipped_steps() counts on. On several ranks not in the
  /// middle of an epoch that this trainer has begun, where ranks have buffers of their own. Throws Error for a number
  /// below 0, and what a step throws, behind which nothing is put back. Collective.
  void rehearse(std::int64_t steps);

  /// Optimizer steps in an epoch.
  std::int64_t steps_per_epoch() const;

  /// Epochs of the run that are complete.
  std::int64_t epochs_done() const { return epochs_done_; }
  /// Optimizer steps over all epochs, the one in work included.
  std::int64_t steps_done() const { return step_; }
  /// Whether early stopping has ended the run: run() then evaluates only.
  bool stopped_early() const { return best_epoch_.should_stop(); }
  /// That the epoch in work has taken so far, before and since the run was gone on with; 0 between two epochs. No part
  /// of state_dict(), which is the same for the same run: who keeps that keeps this beside it, and gives it back behind
  /// load_state_dict(), for the next EpochRecord::seconds.
  double epoch_seconds() const;
  /// Gives back what epoch_seconds() told.
  void set_epoch_seconds(double seconds) { epoch_seconds_before_ = seconds; }
  /// Up to the last step, by the loss scale.
  std::int64_t skipped_in_a_row() const { return skipped_in_a_row_.count(); }

  /// Steps that were launches of a CUDA graph, so far.
  std::int64_t graph_launches() const { return step_graph_ ? step_graph_->launches() : 0; }
  /// The same of batches that were evaluated.
  std::int64_t evaluation_launches() const { return evaluation_graph_ ? evaluation_graph_->launches() : 0; }

  /// What it trains, and with what.
  const TrainingParts& parts() const { return parts_; }
  /// How it was told to train.
  const TrainerOptions& options() const { return options_; }

  /// Whether an evaluation was completed that evaluation_report() tells of.
  bool has_evaluation() const { return evaluated_.has_value(); }

  /// Of the last evaluation, with TrainerOptions::detailed. Throws Error before there is one. Collective.
  EvaluationReport evaluation_report();

  /// What is evaluated, and to be saved: the averages where there are such, else full_state_dict() (weights.h).
  NamedTensors weights() const;

  /// Where the run is, between two epochs or, in an observer's function, between two steps: "model.<name>", which is
  /// full_state_dict() (weights.h); "optimizer.<name>"; "scaler.<name>" where losses are scaled; "ema.<name>" where
  /// weights are averaged; "lookahead.<name>" where there are slow weights; and "trainer.<name>", which are small:
  /// epochs done, steps, what the epoch in work has added up on each rank, and what must be as it was for the rest to
  /// be the same (seed, batch size, micro-batches, images of an epoch). The tensors of model and optimizer are the live
  /// ones: they hold this state until the next step. Buffers are this rank's, of which an epoch's end keeps rank 0's:
  /// write rank 0's state. Collective.
  NamedTensors state_dict() const;

  /// Goes on from a state, the same on all ranks, of which there may be more or fewer than then: the next run() or
  /// fit() begins behind its last step. With as many ranks the rest of the run has the same bits; with others the same
  /// batches in other sums, and dropout's masks, which are a rank's own, are others. Throws AgreedError, and nothing
  /// has changed, where the state lacks something, has something else, or is of a run of other settings, and where
  /// ranks were given different ones. Collective.
  void load_state_dict(const NamedTensors& state);

 private:
  struct Defaults;
  struct Position;
  /// How the steps of an epoch end. Where ranks see different ends, the last of these counts.
  enum class StepsEnd : std::uint8_t { complete, stopped, diverged };
  /// Whether a step is the last that run_epoch() takes, or also that of run() or fit().
  enum class StepPlace : std::uint8_t { in_epoch, ends_epoch, ends_run };
  struct Evaluated {
    const char* split;
    std::int64_t epoch;
    Metrics metrics;
    EvaluationDetails details;
  };

  Trainer(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader, const TrainerOptions& options,
          const std::shared_ptr<Defaults>& defaults);
  Trainer(const TrainingParts& parts, const TrainerOptions& options, std::shared_ptr<Defaults> defaults);
  static TrainingParts complete(layers::Module& model, optim::Optimizer& optimizer, data::Loader& train_loader,
                                const TrainerOptions& options, Defaults& defaults);

  EpochRecord run_epochs(std::int64_t first, std::int64_t last, const TrainObserver& observer);

  /// Throws Error where a step would not train the model: see run_epoch().
  void check_optimizer() const;
  void check_buffers();
  std::int64_t steps_until_pause() const;
  StepsEnd run_steps(std::int64_t epoch, const TrainObserver& observer);
  StepsEnd end_of_step(const TrainObserver& observer);
  bool must_stop(const TrainObserver& observer);
  Divergence divergence();
  void run_step(std::int64_t images, std::int64_t micro_batches, StepPlace place);
  std::int64_t steps_in_all() const;
  void set_lr_of_step(std::int64_t step);
  void run_micro_batch(std::int64_t images_in_step, bool is_last);
  optim::FiniteCheck take_step(std::int64_t images, std::int64_t micro_batches, bool is_measured);
  optim::FiniteCheck take_step_by_graph(std::int64_t images_in_step);
  void make_graphs();
  std::string make_step_graph();
  std::string make_evaluation_graph();
  void await_exchange(const std::shared_ptr<comm::Work>& exchange) const;
  void run_canonical_batch(std::int64_t images_in_step);
  void compute_micro_batches(const data::Batch& batch, std::int64_t images_in_step);
  data::DeferredBatch next_deferred_batch();
  data::Batch next_batch();
  ScoredBatch compute(const data::Batch& batch, double share);
  void report_step(std::int64_t epoch, std::int64_t images, const TrainObserver& observer);
  void rehearse_evaluation();
  bool is_evaluated(std::int64_t epoch) const;
  void sync_replicas();
  bool fill_in_evaluation(EpochRecord& record, const TrainObserver& observer);
  std::optional<Scores> evaluate(data::Loader& loader, const char* split, const TrainObserver& observer);
  bool fill_in_test(EpochRecord& record, const TrainObserver& observer);
  void sync_averages();
  void fill_in_best(EpochRecord& record);
  void fill_in_costs(EpochRecord& record);
  void fill_in_circumstances(EpochRecord& record);
  EpochRecord evaluate_only(const TrainObserver& observer);
  double end_epoch_time();

  std::int64_t images_per_step() const;
  std::int64_t images_before(std::int64_t step) const;
  std::int64_t skipped_steps() const { return skipped_before_ + parts_.scaler.skipped_steps(); }

  Tensor epoch_sums() const;
  Scores own_scores() const;
  Position position_of(const NamedTensors& state) const;
  void take_position(const Position& position);

  std::shared_ptr<Defaults> defaults_;  // parts that were not given
  TrainingParts parts_;
  TrainerOptions options_;
  NamedTensors buffers_;  // of the model, as replicas and averages have them
  Scoring scoring_, test_scoring_;
  BestEpoch best_epoch_;
  std::shared_ptr<layers::RandomState> random_state_;
  std::optional<CanonicalStep> canonical_;             // in canonical mode
  std::unique_ptr<StepGraph> step_graph_;              // where steps are recorded
  std::unique_ptr<EvaluationGraph> evaluation_graph_;  // where evaluations are
  // DistributedDataParallel::exchange_under_way() of the last step, and of that before it.
  std::shared_ptr<comm::Work> exchange_, earlier_exchange_;
  std::optional<optim::ExponentialMovingAverage> ema_;
  std::optional<optim::Lookahead> lookahead_;
  std::optional<Evaluated> evaluated_;    // the last, where it is kept
  double base_lr_;                        // what the schedule's factor is of
  double lr_;                             // the optimizer's, as this trainer left it
  std::int64_t last_epoch_;               // of run() or fit(), for progress
  std::int64_t last_step_;                // of run(), over all epochs
  std::int64_t step_ = 0;                 // over all epochs
  std::int64_t epochs_done_ = 0;          // the number of the last one
  std::int64_t epoch_step_ = 0;           // steps of the epoch in work
  std::int64_t uncounted_step_ = -1;      // where a run of so many steps ends in an epoch, until that is counted
  RunningScores epoch_scores_{scoring_};  // of this rank, in canonical mode of all, since that epoch began
  bool all_know_ = false;                 // that some rank has a step in that epoch whose loss is not finite
  SkippedInARow skipped_in_a_row_;
  double loss_scale_ = 1.0;  // of the last step that was reported or had an L1 penalty
  bool may_stop_ = false;    // some rank is asked behind each step
  PhaseTimer phases_;        // of the epoch in work
  std::vector<LayerNorms> layer_norms_;
  std::vector<DeadRelus> dead_relus_;                                 // of the last evaluation
  std::optional<std::chrono::steady_clock::time_point> epoch_start_;  // of the epoch in work, or of what is left of it
  double epoch_seconds_before_ = 0.0;                                 // what that epoch took before
  bool has_begun_ = false;                                            // a step was taken here
  bool is_resumed_ = false;                                           // the next epoch goes on behind epoch_step_
  std::int64_t skipped_before_ = 0;  // steps that were skipped before this trainer's scaler counted
};

}  // namespace tandem::train
