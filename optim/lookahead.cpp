// When slow weights move, and by how much.
#include "tandem/optim/lookahead.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace tandem::optim {
namespace {

/// A state dict has handles of its own of a model's parameters, and of one that has two names two handles.
bool are_same_elements(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.shape() == b.shape();
}

/// Its number among the optimizer's parameters; nothing for what is none of them.
std::optional<std::size_t> index_of(const Tensor& tensor, const Optimizer& optimizer) {
  const std::vector<Tensor>& parameters = optimizer.parameters();
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Tensor& other) { return are_same_elements(other, tensor); });
  if (found == parameters.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters.begin());
}

Tensor wide_copy_of(const Tensor& tensor) {
  const MemoryTagScope scope(MemoryTag::optimizer);
  if (!is_half(tensor.dtype())) return tensor.clone();
  return autograd::cast(tensor, kernels::optimizer_state_dtype(tensor.dtype()));
}

void check(const LookaheadOptions& options) {
  require(options.every >= 1, "lookahead: every {} must be 1 step or more", options.every);
  require(options.decay > 0.0 && options.decay < 1.0, "lookahead: the decay must be between 0 and 1, got {}",
          options.decay);
  require(std::isfinite(options.power) && options.power >= 0.0,
          "lookahead: power {} must be a finite number, 0 (a constant decay) or more", options.power);
}

}  // namespace

LookaheadOptions LookaheadOptions::constant(std::int64_t every, double alpha) {
  require(every >= 1, "lookahead: every {} must be 1 step or more", every);
  require(alpha > 0.0 && alpha < 1.0, "lookahead: alpha must be between 0 and 1, got {}", alpha);
  return {.every = every, .decay = std::pow(1.0 - alpha, 1.0 / static_cast<double>(every)), .power = 0.0};
}

double LookaheadOptions::decay_at(std::int64_t step, std::int64_t steps) const {
  require(step >= 1 && steps >= 1, "lookahead: step {} of {} must be 1 or more of 1 or more", step, steps);
  const double share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return std::pow(decay, static_cast<double>(every)) * std::pow(share, power);
}

Lookahead::Lookahead(const NamedTensors& tensors, const Optimizer& optimizer, const LookaheadOptions& options)
    : options_(options) {
  check(options);
  const autograd::NoGrad no_grad;
  std::vector<Tensor> seen;
  for (const auto& [name, given] : tensors) {
    require(given.defined(), "lookahead: {} must be a dense tensor, got {}", name, describe(given));
    const Tensor tensor = given.detach();
    if (!is_floating(tensor.dtype())) continue;
    require(tensor.is_dense(), "lookahead: {} must be a dense tensor, got {}", name, describe(tensor));
    const bool has_two_names =
        std::any_of(seen.begin(), seen.end(), [&](const Tensor& other) { return are_same_elements(other, tensor); });
    if (has_two_names) continue;
    seen.push_back(tensor);
    const std::optional<std::size_t> index = index_of(tensor, optimizer);
    if (!index && !kernels::all_finite(std::array{tensor})) continue;
    const Tensor master = index ? optimizer.master(*index) : Tensor();
    targets_.push_back(master.defined() ? Target{master, tensor} : Target{tensor, {}});
    slow_.emplace_back(name, wide_copy_of(targets_.back().value));
    require(slow_.back().second.strides() == tensor.strides(), "lookahead: {}, {}, has no dense copy in its strides",
            name, tensor);
  }
}

void Lookahead::after_step(std::int64_t step, std::int64_t steps) { after_step(step, steps, FiniteCheck()); }

void Lookahead::after_step(std::int64_t step, std::int64_t steps, const FiniteCheck& taken) {
  const double decay = options_.decay_at(step, steps);
  settle_steps();
  if (taken.is_known() && !taken.passed()) return;
  unsettled_ = taken;
  if (++steps_taken_ % options_.every == 0) move(decay, taken.found());
}

void Lookahead::settle_steps() const {
  if (!unsettled_.passed()) --steps_taken_;
  unsettled_ = {};
}

std::int64_t Lookahead::steps_taken() const {
  settle_steps();
  return steps_taken_;
}

void Lookahead::move(double decay, const Tensor& skip) {
  const ProfileRange range("lookahead");
  std::vector<kernels::LookaheadItem> items;
  for (std::size_t i = 0; i < slow_.size(); ++i) {
    const auto& [value, rounded] = targets_[i];
    const bool is_master = rounded.defined();
    items.push_back({.slow = Out(slow_[i].second),
                     .weight = Out(is_master ? rounded : value),
                     .master = is_master ? Out(value) : Out()});
  }
  if (items.empty()) return;
  control_.set(0, {.lr = 1.0 - decay});
  kernels::lookahead_step(items, decay, skip, control_.row(0, items.front().weight.device()), &table_);
}

void Lookahead::finish() {
  // No move yet: slow weights are those that training began with. Whether the last step was taken is waited for only
  // where that depends on it.
  if (steps_taken_ == options_.every) settle_steps();
  if (steps_taken_ < options_.every) return;
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  for (std::size_t i = 0; i < slow_.size(); ++i) {
    const Tensor& slow = slow_[i].second;
    const auto& [value, rounded] = targets_[i];
    value.copy_from(autograd::cast(slow, value.dtype()));
    if (rounded.defined()) rounded.copy_from(autograd::cast(slow, rounded.dtype()));
  }
}

void Lookahead::load(const NamedTensors& slow_weights, std::int64_t steps_taken) {
  require(steps_taken >= 0, "lookahead: the number of steps must be 0 or more, got {}", steps_taken);
  require(slow_weights.size() == slow_.size(), "lookahead: {} slow weights are given, there are {}",
          slow_weights.size(), slow_.size());
  std::vector<Tensor> sources;
  for (const auto& [name, slow] : slow_) {
    const auto found = std::find_if(slow_weights.begin(), slow_weights.end(),
                                    [&, &own = name](const auto& entry) { return entry.first == own; });
    require(found != slow_weights.end(), "lookahead: among those given there is no slow weight of {}", name);
    const Tensor& source = found->second;
    require(source.defined() && source.shape() == slow.shape() && source.dtype() == slow.dtype(),
            "lookahead: the slow weight of {} must be {}, got {}", name, slow, describe(source));
    sources.push_back(source);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) slow_[i].second.copy_from(sources[i]);
  steps_taken_ = steps_taken;
  unsettled_ = {};
}

}  // namespace tandem::optim
