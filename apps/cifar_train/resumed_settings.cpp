// Settings of a checkpoint and of the run that goes on from it.
#include "resumed_settings.h"

#include "tandem/core/error.h"
#include "tandem/train/config_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::apps {
namespace {

const std::string kPrefix = "setting.";

/// With another value, the state would be that of something else, or its best epoch one of other figures.
constexpr std::array<std::string_view, 21> kNeeded{
    "dataset",           "limit-train", "limit-test", "model",      "layers",    "shared-weights", "batch-norm",
    "grad-accumulation", "drop-last",   "optimizer",  "seed",       "best-by",   "precision",      "master-weights",
    "validation-split",  "canonical",   "width",      "activation", "unit-head", "celu-alpha",     "whitening"};

/// These may change although they affect the result: of weights, order and batches a checkpoint has its own, or they
/// are checked otherwise, and the rest is rounding or is about what comes.
constexpr std::array<std::string_view, 13> kFree{
    "load-weights", "autotune",  "global-batch-size", "batch-size",     "device",
    "backend",      "replicas",  "simulate-network",  "comm-algorithm", "tune-comm",
    "comm-costs",   "bucket-mb", "max-skipped-steps"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether one of two values in TOML is "nothing", for which there is no state, and the other is not.
bool only_one_is_nothing(std::string_view option, const std::string& a, const std::string& b) {
  const auto is_nothing = [&](const std::string& value) {
    return option == "momentum" ? value == "0" || value == "0.0" : value == "\"none\"";
  };
  if (a.empty() || b.empty()) return false;  // a default, which other settings decide
  return (option == "momentum" || option == "loss-scale") && is_nothing(a) != is_nothing(b);
}

}  // namespace

layers::Metadata settings_metadata(const OptionTable& table) {
  layers::Metadata metadata;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    if (!option.differs_by_rank) metadata[kPrefix + option.name] = value ? train::to_toml(*value) : "";
  }
  return metadata;
}

std::string compare_settings(const OptionTable& table, const layers::Metadata& checkpoint) {
  std::string needed, others;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    const auto saved = checkpoint.find(kPrefix + option.name);
    const bool must_agree = contains(kNeeded, option.name);
    if (option.differs_by_rank || (!must_agree && (!option.affects_result() || contains(kFree, option.name)))) continue;
    if (saved == checkpoint.end()) continue;  // an option that its program did not have
    const std::string now = value ? train::to_toml(*value) : "", then = saved->second;
    if (now == then) continue;
    const bool is_needed = must_agree || only_one_is_nothing(option.name, now, then);
    std::string& list = is_needed ? needed : others;
    list += fmt::format("{}--{} {} (now {})", list.empty() ? "" : ", ", option.name, then.empty() ? "not given" : then,
                        now.empty() ? "not given" : now);
  }
  require(needed.empty(),
          "the checkpoint is of a run with {}: give the same (config.toml of its run has them), or begin another run "
          "from its weights: --load-weights CHECKPOINT/model.safetensors",
          needed);
  return others;
}

}  // namespace tandem::apps
