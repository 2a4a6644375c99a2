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

/// With another value, the state would be that of something else.
constexpr std::array<std::string_view, 13> kNeeded{
    "dataset",   "limit-train", "model", "layers",    "shared-weights", "batch-norm",      "grad-accumulation",
    "drop-last", "optimizer",   "seed",  "precision", "master-weights", "validation-split"};

/// These may change although they affect the result: of weights, order and batches a checkpoint has its own, or they
/// are checked otherwise, and the rest is rounding or is about what comes.
constexpr std::array<std::string_view, 9> kFree{"load-weights", "autotune", "global-batch-size",
                                                 "batch-size", "device",           "backend",  "bucket-mb",
                                                 "best-by",    "max-skipped-steps"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

layers::Metadata settings_metadata(const OptionTable& table) {
  layers::Metadata metadata;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    if (value && !option.differs_by_rank) metadata[kPrefix + option.name] = train::to_toml(*value);
  }
  return metadata;
}

std::string compare_settings(const OptionTable& table, const layers::Metadata& checkpoint) {
  std::string needed, others;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    const auto saved = checkpoint.find(kPrefix + option.name);
    if (option.differs_by_rank || !option.affects_result() || contains(kFree, option.name)) continue;
    const std::string now = value ? train::to_toml(*value) : "", then = saved == checkpoint.end() ? "" : saved->second;
    if (now == then || saved == checkpoint.end()) continue;  // an option that its program did not have
    std::string& list = contains(kNeeded, option.name) ? needed : others;
    list += fmt::format("{}--{} {} (now {})", list.empty() ? "" : ", ", option.name, then, now.empty() ? "none" : now);
  }
  require(needed.empty(),
          "the checkpoint is of a run with {}: give the same (config.toml of its run has them), or begin another run "
          "from its weights: --load-weights CHECKPOINT/model.safetensors",
          needed);
  return others;
}

}  // namespace tandem::apps
