// Defaults that depend on other options, and combinations that make no sense.
#include "profiled_steps.h"
#include "settings.h"

#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/parse_device.h"
#include "tandem/data/augment.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/train/best_by.h"

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace tandem::apps {
namespace {

/// Half precision's own options: their defaults.
void resolve_precision(Settings& s) {
  require(!is_half(storage_dtype(s.precision)) || s.model.conv_impl != kernels::ConvImpl::onednn,
          "--conv-impl onednn computes in f32 only, not in --precision {}; choose auto", name_of(s.precision));
  if (!s.loss_scale) s.loss_scale = s.precision == autograd::Precision::fp16 ? "dynamic" : "none";
  if (s.allreduce_dtype == "auto") s.allreduce_dtype = "fp32";
}

void resolve_run_directory(Settings& s) {
  const bool has_none = s.run_dir_choice == kNoRunDirectory;
  require(s.resume != "auto" || !has_none, "--resume auto goes on from a run directory: leave --no-run-dir out");
  require(!s.histograms || !has_none, "--histograms are kept in a run directory: leave --no-run-dir out");
  require(!s.profile || !has_none || !s.trace.empty(),
          "--profile writes into a run directory: leave --no-run-dir out, or name a file by --trace");
  require(std::filesystem::path(s.trace).extension() != ".html",
          "--trace {}: a trace is JSON, and a picture of a step is written beside it as .html; name a .json file",
          s.trace);
  require(s.trainer.log_every == 0 || !has_none || !s.log.empty(), "--log-every {} needs a --log FILE to write to",
          s.trainer.log_every);
  const bool names_none = s.run_dir_choice.empty() || has_none;
  require(!s.find_nan || !names_none || (!s.resume.empty() && s.resume != "auto"),
          "--find-nan goes on from the checkpoints of a run: name it by --run-dir DIR or --resume DIR");
  if (!has_none) s.run_dir = s.run_dir_choice;
  fill_run_directory(s);
}

/// By what epochs are held against each other, and that each has such a figure.
void resolve_best_by(Settings& s) {
  using train::BestBy;
  const bool validates = s.validation_split > 0.0;
  if (!s.best_by) s.best_by = validates ? BestBy::validation_accuracy : BestBy::test_accuracy;
  const bool by_validation = *s.best_by == BestBy::validation_accuracy || *s.best_by == BestBy::validation_loss;
  require(validates || !by_validation, "--best-by {} needs a --validation-split", name_of(*s.best_by));
  require(!validates || by_validation || *s.best_by == BestBy::train_loss,
          "--best-by {}: with --validation-split the test images are evaluated once, at the end; choose "
          "validation_accuracy or validation_loss",
          name_of(*s.best_by));
  require(s.trainer.early_stopping.patience == 0 || s.trainer.evaluate_every == 1,
          "--evaluate-every {}: --early-stopping counts epochs that were no better, so that each must be evaluated; "
          "leave one out",
          s.trainer.evaluate_every);
  require(s.trainer.early_stopping.patience == 0 || *s.best_by != BestBy::train_loss,
          "--early-stopping {}: the training loss tells nothing of other images; choose another --best-by",
          to_string(s.trainer.early_stopping));
  s.trainer.best_by = s.best_by;
}

bool is_one_file(const std::string& a, const std::string& b) {
  const auto place_of = [](const std::string& path) {
    std::error_code unknown;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  if (a.empty() || b.empty()) return false;
  const auto place = place_of(a);  // empty where the system cannot follow the path
  return place.empty() ? a == b : place == place_of(b);
}

/// Those that are not empty; one where both are the same file.
std::vector<std::string> distinct_files(const std::string& a, const std::string& b) {
  std::vector<std::string> paths;
  if (!a.empty()) paths.push_back(a);
  if (!b.empty() && !is_one_file(a, b)) paths.push_back(b);
  return paths;
}

/// What is written must not replace what else is written. A log may be both --log and that of the run directory, and so
/// may the weights be: they are written once then.
void require_different_files(const Settings& s) {
  struct Written {
    std::string_view what, kind;
    const std::string& path;
  };
  const auto of_run = [&](const char* name) {
    return s.run_dir.empty() ? "" : (std::filesystem::path(s.run_dir) / name).string();
  };
  const std::string picture = s.trace.empty() ? "" : step_picture_file(s.trace), config = of_run("config.toml"),
                    report = of_run("report.html");
  const std::array<Written, 10> files{{{"--log", "log", s.log},
                                       {"the log of --run-dir", "log", s.run_log},
                                       {"--save-weights", "weights", s.save_weights},
                                       {"the weights of --run-dir", "weights", s.run_weights},
                                       {"--tuning-file", "tuning", s.tuning_file},
                                       {"--comm-costs", "costs", s.comm_costs},
                                       {"--trace", "trace", s.trace},
                                       {"the picture of --trace", "trace", picture},
                                       {"the settings of --run-dir", "settings", config},
                                       {"the report of --run-dir", "report", report}}};
  for (const Written& a : files) {
    for (const Written& b : files)
      require(a.kind >= b.kind || !is_one_file(a.path, b.path), "{} and {} are both {}: name two files", a.what, b.what,
              a.path);
  }
}

void resolve_warmup(const Settings& s) {
  require(s.warmup_steps == 0 || s.warmup_epochs == 0.0,
          "--warmup-steps {} and --warmup-epochs {} exclude each other: give one (0 sets that of a config file aside)",
          s.warmup_steps, s.warmup_epochs);
  require(!s.warmup_start_factor || s.warmup_steps > 0 || s.warmup_epochs > 0.0,
          "--warmup-start-factor {}: there is no warm-up; give --warmup-epochs or --warmup-steps",
          s.warmup_start_factor.value_or(0.0));
  require(s.epochs == 0.0 || s.trainer.steps > 0 || s.warmup_epochs < s.epochs,
          "--warmup-epochs {}: must be less than --epochs {}", s.warmup_epochs, s.epochs);
}

bool is_cifar(const std::string& dataset) { return dataset == "cifar10" || dataset == "cifar100"; }

}  // namespace

void resolve(Settings& s, std::int64_t ranks) {
  if (!s.augment) s.augment = data::parse_augment(is_cifar(s.data.name) ? "crop,flip" : "none");
  s.optimizer = optim::with_defaults(s.optimizer);
  check_parameter_groups(s);
  if (!s.step_epochs && s.schedule == "step") s.step_epochs = kDefaultStepEpochs;
  if (!s.step_factor && s.schedule == "step") s.step_factor = kDefaultStepFactor;
  if (!s.batch_size && !s.global_batch_size) {
    const std::int64_t parts = s.canonical > 0 ? s.canonical : ranks * s.trainer.accumulation;
    s.global_batch_size = (s.loader.global_batch_size + parts - 1) / parts * parts;
  }
  // oneDNN's sums depend on the number of threads, and what cuDNN takes on the machine.
  if (s.canonical > 0 && s.model.conv_impl == kernels::ConvImpl::automatic)
    s.model.conv_impl = kernels::ConvImpl::fused;
  resolve_precision(s);
  resolve_run_directory(s);
  resolve_best_by(s);
  s.trainer.detailed = s.per_class || s.run_dir_choice != kNoRunDirectory;
  require_different_files(s);
  require(!s.trainer.layer_norms || s.run_dir_choice != kNoRunDirectory || !s.log.empty(),
          "--log-norms needs a --log FILE to write to");
  require(s.trainer.lookahead.every == 0 || s.trainer.ema == 0.0,
          "--lookahead {} and --ema {} both average the weights; leave one out (0 sets that of a config file aside)",
          s.trainer.lookahead.every, s.trainer.ema);
  require(!*s.optimizer.nesterov || *s.optimizer.momentum > 0.0, "--nesterov needs a --momentum above 0");
  resolve_warmup(s);
}

void fill_run_directory(Settings& s) {
  if (s.run_dir.empty()) return;
  const std::filesystem::path folder = s.run_dir;
  s.run_log = (folder / "log.jsonl").string();
  s.run_weights = (folder / "final.safetensors").string();
}

std::vector<std::string> logs_of(const Settings& s) { return distinct_files(s.run_log, s.log); }
std::vector<std::string> weights_files_of(const Settings& s) { return distinct_files(s.run_weights, s.save_weights); }

namespace {

/// Canonical mode needs a binary tree of micro-batches of one size, in which each rank has a branch.
void check_canonical(const Settings& s, std::int64_t ranks) {
  if (s.canonical == 0) return;
  require(!s.autotune && s.tuning_file.empty(),
          "--canonical {}: what --autotune and --tuning-file choose depends on measurements; leave them out",
          s.canonical);
  const auto is_power_of_two = [](std::int64_t number) {
    return std::has_single_bit(static_cast<std::uint64_t>(number));
  };
  require(is_power_of_two(s.canonical), "--canonical {}: must be 1, 2, 4, 8, ... micro-batches", s.canonical);
  require(is_power_of_two(ranks) && ranks <= s.canonical,
          "--canonical {}: takes 1, 2, 4, ... up to {} ranks, and there are {}", s.canonical, s.canonical, ranks);
  const std::int64_t images = global_batch_size(s, ranks);
  require(
      images % s.canonical == 0,
      "--canonical {}: the {} images of a batch cannot be cut evenly into so many micro-batches; choose a multiple of "
      "{} by --global-batch-size",
      s.canonical, images, s.canonical);
  require(s.allreduce_dtype != "half",
          "--canonical {}: gradients are added up and exchanged in f32, not by --allreduce-dtype half", s.canonical);
}

}  // namespace

void check(const Settings& s, std::int64_t ranks) {
  check_canonical(s, ranks);
  micro_batch_size(s, ranks);
  std::error_code unknown;
  require(s.autotune || s.tuning_file.empty() || std::filesystem::exists(s.tuning_file, unknown),
          "--tuning-file {}: no such file; --autotune makes one", s.tuning_file);
}

kernels::Implementations implementations(const Settings& s) { return {s.model.conv_impl, s.model.gemm_impl}; }

bool names_device(const Settings& s) { return s.device.find(':') != std::string::npos; }

Device choose_device(const Settings& s, int local_rank) {
  try {
    Device device = parse_device(s.device);
    if (device.type == DeviceType::cuda && !names_device(s)) device.index = local_rank % cuda_device_count();
    return device;
  } catch (const Error& error) {
    std::string_view what = error.what();
    if (what.starts_with("device ")) what.remove_prefix(what.find(": ") + 2);  // --device says which
    fail("--device {}: {}", s.device, what);
  }
}

std::int64_t micro_batch_size(const Settings& s, std::int64_t ranks) {
  if (s.batch_size) return *s.batch_size;
  const std::int64_t parts = ranks * s.trainer.accumulation;
  require(*s.global_batch_size % parts == 0,
          "--global-batch-size {}: cannot be shared evenly by {} rank{}{}; choose a multiple of {}, or --batch-size "
          "per rank",
          *s.global_batch_size, ranks, ranks == 1 ? "" : "s",
          s.trainer.accumulation == 1 ? "" : fmt::format(" x {} micro-batches", s.trainer.accumulation), parts);
  return *s.global_batch_size / parts;
}

std::int64_t global_batch_size(const Settings& s, std::int64_t ranks) {
  return micro_batch_size(s, ranks) * ranks * s.trainer.accumulation;
}

}  // namespace tandem::apps
