// A row for each optimizer.
#include "tandem/optim/by_name.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/muon.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tandem::optim {

namespace {

std::unique_ptr<Optimizer> make_sgd(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return std::make_unique<SGD>(std::move(parameters), SGDOptions{.lr = *options.lr,
                                                                 .momentum = *options.momentum,
                                                                 .weight_decay = *options.weight_decay,
                                                                 .nesterov = *options.nesterov,
                                                                 .master_weights = options.master_weights});
}

std::unique_ptr<Optimizer> make_adam(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return std::make_unique<Adam>(
      std::move(parameters),
      AdamOptions{.lr = *options.lr, .weight_decay = *options.weight_decay, .master_weights = options.master_weights});
}

std::unique_ptr<Optimizer> make_adamw(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return std::make_unique<AdamW>(
      std::move(parameters),
      AdamWOptions{.lr = *options.lr, .weight_decay = *options.weight_decay, .master_weights = options.master_weights});
}

std::unique_ptr<Optimizer> make_rmsprop(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return std::make_unique<RMSprop>(std::move(parameters), RMSpropOptions{.lr = *options.lr,
                                                                         .weight_decay = *options.weight_decay,
                                                                         .momentum = *options.momentum,
                                                                         .master_weights = options.master_weights});
}

/// The published 1e-7 is added to gradients of sums over 2000 images. Losses of programs are means, whose gradients are
/// of a size that does not grow with the batch; nor does what is added, so that equal gradients make equal steps.
constexpr double kMuonEps = 1e-7 / 2000;

std::unique_ptr<Optimizer> make_muon(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return std::make_unique<Muon>(std::move(parameters),
                                MuonOptions{.lr = *options.lr,
                                            .momentum = *options.momentum,
                                            .nesterov = *options.nesterov,
                                            .weight_decay = *options.weight_decay,
                                            .normalize = *options.normalize_filters,
                                            .normalize_every = *options.normalize_every,
                                            .newton_schulz = {.coefficients = *options.newton_schulz, .eps = kMuonEps},
                                            .aux_lr = *options.aux_lr,
                                            .aux_weight_decay = *options.weight_decay,
                                            .aux_nesterov = *options.nesterov,
                                            .master_weights = options.master_weights});
}

constexpr OptimizerEntry kOptimizers[] = {
    {.name = "sgd", .lr = 0.1, .weight_decay = 5e-4, .momentum = 0.9, .has_nesterov = true, .make = make_sgd},
    {.name = "adam", .lr = 0.001, .weight_decay = 0.0, .momentum = {}, .has_nesterov = false, .make = make_adam},
    {.name = "adamw", .lr = 0.001, .weight_decay = 0.01, .momentum = {}, .has_nesterov = false, .make = make_adamw},
    {.name = "rmsprop", .lr = 0.001, .weight_decay = 0.0, .momentum = 0.0, .has_nesterov = false, .make = make_rmsprop},
    {.name = "muon",
     .lr = 0.24,
     .weight_decay = 0.0,
     .momentum = 0.6,
     .has_nesterov = true,
     .make = make_muon,
     .aux_lr = 0.1,
     .has_filters = true},
};

}  // namespace

std::span<const OptimizerEntry> optimizers() { return kOptimizers; }

std::vector<std::string> optimizer_names(bool (*takes)(const OptimizerEntry&)) {
  std::vector<std::string> names;
  for (const OptimizerEntry& entry : kOptimizers)
    if (takes == nullptr || takes(entry)) names.emplace_back(entry.name);
  return names;
}

const OptimizerEntry& find_optimizer(std::string_view name) {
  const auto* const found = std::ranges::find(kOptimizers, name, &OptimizerEntry::name);
  if (found != std::end(kOptimizers)) return *found;
  fail("{}", unknown_name("optimizer", name, optimizer_names()));
}

OptimizerOptions with_defaults(OptimizerOptions options) {
  const OptimizerEntry& entry = find_optimizer(options.name);
  const auto with_filters = [] {
    return fmt::format("{}", fmt::join(optimizer_names([](const OptimizerEntry& e) { return e.has_filters; }), ", "));
  };
  require(entry.momentum || !options.momentum, "option momentum: {} takes none; choose from {}", entry.name,
          fmt::join(optimizer_names([](const OptimizerEntry& e) { return e.momentum.has_value(); }), ", "));
  require(entry.has_nesterov || !options.nesterov.value_or(false), "option nesterov: {} has none; choose from {}",
          entry.name, fmt::join(optimizer_names([](const OptimizerEntry& e) { return e.has_nesterov; }), ", "));
  require(entry.aux_lr || !options.aux_lr, "option aux_lr: {} has no auxiliary optimizer; choose from {}", entry.name,
          fmt::join(optimizer_names([](const OptimizerEntry& e) { return e.aux_lr.has_value(); }), ", "));
  require(entry.has_filters || !options.normalize_filters.value_or(false),
          "option normalize_filters: {} normalizes none; choose from {}", entry.name, with_filters());
  require(entry.has_filters || !options.normalize_every, "option normalize_every: {} normalizes none; choose from {}",
          entry.name, with_filters());
  require(entry.has_filters || !options.newton_schulz, "option newton_schulz: {} has no such steps; choose from {}",
          entry.name, with_filters());
  if (!options.lr) options.lr = entry.lr;
  if (!options.momentum) options.momentum = entry.momentum;
  if (!options.weight_decay) options.weight_decay = entry.weight_decay;
  if (!options.nesterov) options.nesterov = entry.has_nesterov && *options.momentum > 0.0;
  if (!options.aux_lr) options.aux_lr = entry.aux_lr;
  if (!options.normalize_filters && entry.has_filters) options.normalize_filters = true;
  if (!options.normalize_every && entry.has_filters) options.normalize_every = NormalizeEvery{};
  if (!options.newton_schulz && entry.has_filters) options.newton_schulz = NewtonSchulzOptions{}.coefficients;
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(std::vector<Tensor> parameters, const OptimizerOptions& options) {
  return find_optimizer(options.name).make(std::move(parameters), with_defaults(options));
}

}  // namespace tandem::optim
