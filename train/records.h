// What a run reports: the records of the JSONL log, and what the console shows of them.
#pragma once

#include "tandem/train/config_value.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// Software a run was made with: name and version.
using Versions = std::vector<std::pair<std::string, std::string>>;

/// What is known before the first step.
struct RunRecord {
  Config config;
  Versions versions;
  std::string host;     ///< of rank 0
  std::string started;  ///< UTC, 2026-01-31T12:00:00Z
  std::string backend;
  std::string device;
  std::int64_t world_size = 1;
  std::int64_t threads = 1;  ///< per rank
  std::string model;
  std::int64_t model_parameters = 0;
  std::string dataset;
  std::int64_t train_images = 0;
  std::int64_t test_images = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t steps_per_epoch = 0;
};

/// One optimizer step; the loss is the mean over the global batch.
struct StepRecord {
  std::int64_t step = 0;  ///< from 1, over all epochs
  std::int64_t epoch = 0;
  double lr = 0.0;
  double loss = 0.0;
  double loss_scale = 1.0;         ///< that this step's gradients were computed at
  std::int64_t skipped_steps = 0;  ///< so far: not taken because a gradient was not finite
};

/// Figures of the program's own, by name.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// One epoch. Accuracies in percent; train figures are means over the epoch as it went, in train mode.
/// Example:
///     const auto print = [](const EpochRecord& epoch) {  // for TrainObserver::epoch
///       std::printf("epoch %d: %.1f %%\n", static_cast<int>(epoch.epoch), epoch.test_accuracy);
///     };
struct EpochRecord {
  std::int64_t epoch = 0;  ///< from 1
  double lr = 0.0;         ///< at the last step
  double train_loss = 0.0;
  double train_accuracy = 0.0;
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  double seconds = 0.0;            ///< training and evaluation
  double images_per_second = 0.0;  ///< all ranks, training only
  std::int64_t world_size = 1;
  std::string backend;
  std::int64_t peak_memory_bytes = 0;  ///< resident set, largest over ranks
  double loss_scale = 1.0;             ///< after the last step
  std::int64_t skipped_steps = 0;      ///< since the run began
  NamedValues train_metrics{};         ///< those of TrainerOptions::metrics, as the two above
  NamedValues test_metrics{};
  bool stopped = false;  ///< ended in its middle by TrainObserver::stop: figures are of what was done, without a test
};

/// The most bytes that tensors of each kind ever took on this rank's device, by name.
using TensorMemory = std::vector<std::pair<std::string, std::int64_t>>;

/// The end of a run: its last epoch, the whole time from process start, and the memory of rank 0's tensors.
struct ResultRecord {
  EpochRecord last;
  double total_seconds = 0.0;
  TensorMemory peak_tensor_bytes{};
};

}  // namespace tandem::train
