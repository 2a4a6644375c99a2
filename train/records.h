// What a run reports: the records of the JSONL log, and what the console shows of them.
#pragma once

#include "tandem/comm/cost/speed_up.h"
#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/train/config_value.h"
#include "tandem/train/phase_times.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// Software a run was made with: name and version.
using Versions = std::vector<std::pair<std::string, std::string>>;

/// What is known before the first step.
struct RunRecord {
  Config config;                              ///< settings of the run
  std::vector<std::string> without_effect{};  ///< settings that do not affect what is learned: paths, output
  Versions versions;                          ///< of the libraries that the program runs with
  std::string host;                           ///< of rank 0
  std::string started;                        ///< UTC, 2026-01-31T12:00:00Z
  std::string backend;                        ///< name of the process group's
  std::string all_reduce{};                   ///< the backend's algorithm (ProcessGroup::algorithm()), or empty
  std::string progress{};              ///< who moves sums on, "thread" or "poll" (ProcessGroup::progress()), or empty
  std::string network{};               ///< the one that is simulated (ProcessGroup::network()), or empty
  std::string device;                  ///< "cpu", "cuda:0"
  std::int64_t world_size = 1;         ///< how many ranks there are
  std::int64_t threads = 1;            ///< per rank
  std::string model;                   ///< name of the network
  std::int64_t model_parameters = 0;   ///< how many numbers are learned
  std::string dataset;                 ///< name of the data set
  std::int64_t train_images = 0;       ///< of all ranks
  std::int64_t test_images = 0;        ///< of all ranks
  std::int64_t validation_images = 0;  ///< held out of the training set
  std::int64_t global_batch_size = 0;  ///< images in an optimizer step
  std::int64_t steps_per_epoch = 0;    ///< optimizer steps
  std::int64_t steps_done = 0;         ///< before, by the checkpoint that the run goes on from
  double loading_seconds = 0.0;        ///< that rank 0 took to read the images
  double whitening_seconds = 0.0;      ///< to make layers of them; 0 where there are none, or weights come from a file
};

/// One optimizer step; the loss is the mean over the global batch.
struct StepRecord {
  std::int64_t step = 0;           ///< from 1, over all epochs
  std::int64_t epoch = 0;          ///< from 1
  double lr = 0.0;                 ///< learning rate of the step
  double loss = 0.0;               ///< mean over the global batch
  double loss_scale = 1.0;         ///< that this step's gradients were computed at
  std::int64_t skipped_steps = 0;  ///< so far: not taken because a gradient was not finite
};

/// Figures of the program's own, by name.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The most bytes that tensors of each kind ever took on this rank's device, by name.
using TensorMemory = std::vector<std::pair<std::string, std::int64_t>>;

/// Euclidean norms of a layer's parameters at one step.
struct LayerNorms {
  std::string name;            ///< of the module, as in the model's state dict
  double gradient_norm = 0.0;  ///< of all ranks, before clipping
  double update_norm = 0.0;    ///< of what the step added to the weights
  double weight_norm = 0.0;    ///< behind the step
};

/// How many of a ReLU's channels gave 0 for every image that was evaluated.
struct DeadRelus {
  std::string name;           ///< of the module; of its second call in a forward pass "features.2 (call 2)"
  std::int64_t channels = 0;  ///< how many it has
  std::int64_t dead = 0;      ///< how many of them are dead

  double percent() const { return 100.0 * static_cast<double>(dead) / static_cast<double>(channels); }  ///< dead ones
  friend bool operator==(const DeadRelus&, const DeadRelus&) = default;
};

/// The best epoch of a run so far, by one figure.
struct BestFigure {
  std::string by;          ///< "test_accuracy": a name of BestBy (best_by.h)
  std::int64_t epoch = 0;  ///< the first with this figure
  double value = 0.0;      ///< of that figure, then

  friend bool operator==(const BestFigure&, const BestFigure&) = default;
};

/// Where and why a run could not go on.
struct Divergence {
  /// From 1, over all epochs: the first step with a loss that is not finite, or the last of those that were skipped.
  std::int64_t step = 0;
  /// So many steps in a row, this one the last, were skipped by the loss scale. 0: the loss is why.
  std::int64_t skipped_steps = 0;

  friend bool operator==(const Divergence&, const Divergence&) = default;
};

/// One epoch. Accuracies in percent; what was not evaluated is NaN; train figures are means over the epoch as it went,
/// in train mode. Example:
///     const auto print = [](const EpochRecord& epoch) {  // for TrainObserver::epoch
///       std::printf("epoch %d: %.1f %%\n", static_cast<int>(epoch.epoch), epoch.test_accuracy);
///     };
struct EpochRecord {
  std::int64_t epoch = 0;              ///< from 1
  double lr = 0.0;                     ///< at the last step
  double train_loss = 0.0;             ///< mean over the epoch
  double train_accuracy = 0.0;         ///< percent
  double test_loss = 0.0;              ///< mean over the test images
  double test_accuracy = 0.0;          ///< percent
  double seconds = 0.0;                ///< training and evaluation, also those before a run was gone on with
  double images_per_second = 0.0;      ///< all ranks, training only
  std::int64_t world_size = 1;         ///< how many ranks there are
  std::string backend;                 ///< name of the process group's
  std::int64_t peak_memory_bytes = 0;  ///< resident set, largest over ranks
  double loss_scale = 1.0;             ///< after the last step
  std::int64_t skipped_steps = 0;      ///< since the run began
  NamedValues train_metrics{};         ///< those of TrainerOptions::metrics, as the two above
  NamedValues test_metrics{};          ///< those of TrainerOptions::metrics, of the test images
  /// Ended in its middle, or in its evaluation, by TrainObserver::stop: figures are of what was done, without a test.
  bool stopped = false;
  double validation_loss = std::numeric_limits<double>::quiet_NaN();      ///< mean over the images that are held out
  double validation_accuracy = std::numeric_limits<double>::quiet_NaN();  ///< percent
  NamedValues validation_metrics{};  ///< those of TrainerOptions::metrics, of the images that are held out
  std::optional<BestFigure> best{};  ///< of the run so far, this epoch included
  bool stopped_early = false;        ///< the run ends behind it by TrainerOptions::early_stopping
  bool trained = true;               ///< false: only tested, as nothing was left to train; train figures mean nothing
  /// Ended in its middle, and the run with it: figures are of what was done, without a test.
  std::optional<Divergence> diverged{};
  std::int64_t steps = 0;                          ///< that `time` is of: fewer than an epoch's where a run went on
  std::optional<PhaseTimes> time{};                ///< of this rank; writing is that since the record before
  TensorMemory memory{};                           ///< of this rank, so far
  std::optional<comm::ExchangeTotals> exchange{};  ///< of this rank's gradients; on several ranks
  /// Seconds of this epoch's backward passes in which gradients could be exchanged (ExchangeTotals::window_seconds); on
  /// one rank.
  std::optional<double> exchange_window{};
  std::vector<LayerNorms> layers{};     ///< at the epoch's last step, with TrainerOptions::layer_norms
  std::vector<DeadRelus> dead_relus{};  ///< in the evaluation behind the epoch, with TrainerOptions::dead_relus
};

/// Ranks on hosts of their own, each with as many images a step as a rank of the run had.
struct Scaling {
  double step_seconds = 0.0;          ///< of a step without waiting for other ranks
  double window_seconds = 0.0;        ///< of these, in which gradients were exchanged meanwhile, or can be
  bool costs_are_usual = true;        ///< no costs of messages were measured: usual_message_costs()
  bool network_is_simulated = false;  ///< costs are, or were measured, of one (ProcessGroup::network())
  /// Seconds of a message of no bytes between hosts, and bytes per second of a long one.
  double latency = 0.0, bytes_per_second = 0.0;
  std::vector<comm::SpeedUp> predicted = {};  ///< for 1, 2, 4 ... 64 ranks
};

/// The end of a run: its last epoch, the whole time from process start, and the memory of rank 0's tensors.
struct ResultRecord {
  EpochRecord last;                  ///< the last epoch
  double total_seconds = 0.0;        ///< from the start of the process
  TensorMemory peak_tensor_bytes{};  ///< of rank 0
  std::optional<Scaling> scaling{};  ///< predict_scaling() (scaling.h), where that says something
};

/// Whether a set of images was evaluated: some figure of it is a number.
inline bool has_figures(double loss, double accuracy, const NamedValues& metrics) {
  return !std::isnan(loss) || !std::isnan(accuracy) || !metrics.empty();
}

}  // namespace tandem::train
