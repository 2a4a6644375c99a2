// What cifar_train can be told, with its defaults and limits.
#pragma once

#include "option_table.h"

#include "core/device.h"
#include "kernels/implementations.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::apps {

/// Empty optionals are defaults that depend on other options; resolve() fills them in.
struct Settings {
  std::string dataset = "cifar10";
  std::string data;
  std::int64_t limit_train = 0;
  std::int64_t limit_test = 0;
  std::optional<std::string> augment;

  std::string model = "small_cnn";
  std::int64_t layers = 0;
  bool shared_weights = false;
  bool batch_norm = false;
  double dropout = 0.0;
  std::string conv_impl = "auto";
  std::string gemm_impl = "auto";
  bool autotune = false;
  std::string tuning_file;
  std::string load_weights;
  std::string save_weights;

  std::int64_t epochs = 8;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> global_batch_size;
  std::int64_t grad_accumulation = 1;
  std::string optimizer = "sgd";
  std::optional<double> lr;
  std::optional<double> momentum;
  std::optional<bool> nesterov;
  std::optional<double> weight_decay;
  std::string schedule = "one-cycle";
  double warmup_epochs = 0.0;
  std::optional<std::int64_t> step_epochs;
  std::optional<double> step_factor;
  double clip_norm = 0.0;
  double label_smoothing = 0.0;
  std::int64_t seed = 1;

  std::optional<std::string> precision = "fp32";
  std::optional<std::string> loss_scale;
  bool master_weights = true;

  std::string backend = "auto";
  double bucket_mb = 25.0;
  std::string allreduce_dtype = "auto";
  bool check_replicas = false;
  std::optional<std::string> device = "auto";
  std::int64_t threads = 0;

  std::string log;
  std::int64_t log_every = 0;
  std::string progress = "auto";
};

/// Binds every option to its field.
void describe_options(OptionTable& table, Settings& settings);

/// Fills in the defaults that depend on other options and on the number of ranks, and refuses combinations that make no
/// sense. Values themselves were checked as they were read. Throws Error.
void resolve(Settings& settings, std::int64_t ranks);

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
