// The optimizers by name: one row each, from which programs make choices, defaults and help.
#pragma once

#include "tandem/optim/muon.h"
#include "tandem/optim/optimizer.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>

namespace tandem::optim {

/// What a program asks for. Empty ones stand for the optimizer's defaults (with_defaults).
struct OptimizerOptions {
  std::string name = "sgd";                                         ///< one of optimizers()
  std::optional<double> lr = {}, momentum = {}, weight_decay = {};  ///< empty: the optimizer's own
  std::optional<bool> nesterov = {};                                ///< default: where there is momentum
  std::optional<double> aux_lr = {};                   ///< of parameters that the optimizer leaves to an auxiliary one
  std::optional<bool> normalize_filters = {};          ///< MuonOptions::normalize
  std::optional<NormalizeEvery> normalize_every = {};  ///< MuonOptions::normalize_every
  std::optional<std::array<double, 3>> newton_schulz = {};  ///< its coefficients: NewtonSchulzOptions::coefficients
  bool master_weights = true;                               ///< f32 copies of half parameters, which steps are taken in
};

/// One optimizer and its defaults, which are good ones for image networks; those of its own options are PyTorch's.
struct OptimizerEntry {
  std::string_view name;           ///< as in OptimizerOptions
  double lr, weight_decay;         ///< defaults
  std::optional<double> momentum;  ///< empty: it takes none
  bool has_nesterov;               ///< whether Nesterov's momentum is there
  /// From options without empty fields that it uses.
  std::unique_ptr<Optimizer> (*make)(std::vector<Tensor> parameters, const OptimizerOptions& options);
  std::optional<double> aux_lr = {};  ///< default; empty: it steps all parameters by one rule
  bool has_filters = false;           ///< whether that of filters is another: OptimizerOptions::normalize_filters
};

/// All optimizers, in the order in which programs list them.
std::span<const OptimizerEntry> optimizers();

/// Names of those that `takes` is true for; empty: of all.
std::vector<std::string> optimizer_names(bool (*takes)(const OptimizerEntry&) = nullptr);

/// Throws Error for an unknown name, with the nearest.
const OptimizerEntry& find_optimizer(std::string_view name);

/// The options with the optimizer's defaults where they were empty; those that it has no use for stay empty. Throws
/// Error for an unknown name, and for options that it has no use for.
OptimizerOptions with_defaults(OptimizerOptions options);

/// Throws Error for an unknown name and for options out of range.
/// Example:
///     const Tensor weight = autograd::set_requires_grad(Tensor::zeros({10, 256}));  // or the parameters of a module
///     const auto optimizer = make_optimizer({weight}, {.name = "adamw", .lr = 0.002});
std::unique_ptr<Optimizer> make_optimizer(std::vector<Tensor> parameters, const OptimizerOptions& options);

}  // namespace tandem::optim
