// What cifar_train can be told, with its defaults and limits.
#pragma once

#include "option_table.h"
#include "parameter_groups.h"

#include "tandem/autograd/precision.h"
#include "tandem/core/device.h"
#include "tandem/data/load.h"
#include "tandem/data/loader.h"
#include "tandem/kernels/implementations.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/by_name.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/profile/step_window.h"
#include "tandem/train/trainer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::apps {

/// The options of the libraries themselves, and what this program adds. Empty optionals are defaults that depend on
/// other options; resolve() fills them in. What follows from the data or the ranks (channels, seeds, micro-batches) is
/// filled in where they are known.
struct Settings {
  data::DatasetRequest data{.name = "cifar10"};
  std::int64_t limit_train = 0;
  std::int64_t limit_test = 0;
  double validation_split = 0.0;  ///< of the training images; 0: none are held out
  data::LoaderOptions loader;
  std::optional<data::AugmentOptions> augment;  ///< of training images

  layers::ModelOptions model;
  bool autotune = false;
  std::string tuning_file;
  std::string load_weights;
  std::string save_weights;

  double epochs = 8.0;  ///< as asked for; those of `trainer`, and its steps, are settled where the data is known
  train::TrainerOptions trainer{.epochs = 8, .seed = 1};
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> global_batch_size;
  std::int64_t canonical = 0;            ///< micro-batches of canonical mode; 0: not in that mode
  std::int64_t whitening_images = 5000;  ///< that a first layer is made of
  optim::OptimizerOptions optimizer;
  std::optional<std::string> normalize_every, newton_schulz;  ///< of muon, as muon_options.h reads them
  std::vector<GroupSettings> groups;                          ///< of parameters with options of their own
  std::string schedule = "one-cycle";
  double warmup_epochs = 0.0;
  std::int64_t warmup_steps = 0;  ///< in place of warmup_epochs; 0: by these
  std::optional<double> warmup_start_factor;
  double final_lr_factor = 0.0;     ///< of cosine and linear
  std::int64_t final_lr_steps = 0;  ///< how long these stay at it
  std::optional<std::int64_t> step_epochs;
  std::optional<double> step_factor;

  autograd::Precision precision = autograd::Precision::fp32;
  std::optional<std::string> loss_scale;

  std::string backend = "auto";
  std::int64_t replicas = 1;  ///< ranks that are threads of this process
  std::string comm_algorithm = "auto";
  std::string comm_progress = "auto";
  std::optional<double> comm_timeout;  ///< seconds; nothing: comm::default_timeout()
  bool comm_checks = false;
  std::string interface;  ///< network interface of ranks of several hosts; empty: the libraries' choice
  bool tune_comm = false;
  std::string comm_costs;
  std::string network;     ///< words of one that is simulated; empty: none
  double bucket_mb = 0.0;  ///< 0: chosen by the size of the model
  std::string allreduce_dtype = "auto";
  std::string device = "auto";
  std::string resident_data = "auto";
  std::int64_t rehearsal_steps = 0;
  std::int64_t threads = 0;

  std::string run_dir_choice;  ///< as it was given; kNoRunDirectory for none
  std::string run_dir;         ///< where the run is kept; empty: nowhere, or not settled yet
  train::CheckpointInterval checkpoint_every;
  std::int64_t keep = 3;
  std::optional<train::BestBy> best_by;
  std::string resume;
  std::string on_save_error = "continue";
  bool find_nan = false;

  std::string log;  ///< as it was given
  /// Of the run directory; empty: there is none, or it is not settled yet.
  std::string run_log, run_weights;
  bool histograms = false;
  std::optional<train::StepWindow> profile;
  std::string trace;
  std::string progress = "auto";
  bool per_class = false;
};

/// The step schedule's, where nothing else is given.
inline constexpr std::int64_t kDefaultStepEpochs = 10;
inline constexpr double kDefaultStepFactor = 0.1;

/// What --run-dir takes for none.
inline constexpr const char* kNoRunDirectory = "none";

/// Binds every option to its field.
void describe_options(OptionTable& table, Settings& settings);

/// Of these, the ones that say where a run takes place and what it leaves: ranks, devices, checkpoints, output.
void describe_run_options(OptionTable& table, Settings& settings);

/// Fills in the defaults that depend on other options and on the number of ranks, and refuses combinations that make no
/// sense. Values themselves were checked as they were read. Throws Error.
void resolve(Settings& settings, std::int64_t ranks);

/// Names the files of the run directory, if there is one, that have a flag, too: its log, and the weights of the end.
void fill_run_directory(Settings& settings);

/// The files that the run's records are written to: that of the run directory, and --log. None twice.
std::vector<std::string> logs_of(const Settings& settings);

/// The files that the weights of the end are written to: that of the run directory, and --save-weights. None twice.
std::vector<std::string> weights_files_of(const Settings& settings);

/// Refuses what cannot run here, on this number of ranks. Throws Error.
void check(const Settings& settings, std::int64_t ranks);

/// Images per rank in one forward pass. Throws Error where the ranks do not divide the global batch.
std::int64_t micro_batch_size(const Settings& settings, std::int64_t ranks);

/// Images of all ranks in one optimizer step.
std::int64_t global_batch_size(const Settings& settings, std::int64_t ranks);

/// Where this rank computes. Ranks of one host take its GPUs in turn, unless --device names one. Throws Error where
/// there is no such device.
Device choose_device(const Settings& settings, int local_rank);

/// The implementations asked for.
kernels::Implementations implementations(const Settings& settings);

/// True if --device gives an index, as cuda:1 does.
bool names_device(const Settings& settings);

/// The settings that every rank must share, as text; paths, threads and output may differ.
std::string shared_settings(const OptionTable& table);

}  // namespace tandem::apps
