// What all optimizers share.
#include "optim/optimizer.h"

#include "autograd/grad_mode.h"
#include "autograd/variable.h"
#include "core/profile.h"
#include "kernels/optimizer/tensor_list.h"

#include <algorithm>
#include <cmath>

namespace tandem::optim {

namespace {

/// The gradient in the strides of the parameter.
Tensor gradient_like(const Tensor& parameter) {
  const Tensor gradient = autograd::grad(parameter);
  if (!gradient.defined() || gradient.strides() == parameter.strides()) return gradient;
  const Tensor copy = empty_like(parameter);
  copy.copy_from(gradient);
  return copy;
}

}  // namespace

Optimizer::Optimizer(std::string name, std::vector<Tensor> parameters, double lr, std::vector<std::string> state_names)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      state_names_(std::move(state_names)),
      states_(parameters_.size()) {
  require(!parameters_.empty(), "{}: got no parameters", name_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    require(
        parameter.defined() && is_floating(parameter.dtype()) && parameter.is_dense() && autograd::is_leaf(parameter),
        "{}: parameter {} must be a dense floating leaf, got {}", name_, i, describe(parameter));
    const bool repeated = std::any_of(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const Tensor& other) { return other.is_same(parameter); });
    require(!repeated, "{}: parameter {}, {}, is given twice", name_, i, describe(parameter));
  }
  set_lr(lr);
}

void Optimizer::set_lr(double lr) {
  require(std::isfinite(lr) && lr >= 0.0, "{}: the learning rate must be a number >= 0, got {}", name_, lr);
  lr_ = lr;
}

Optimizer::ParameterState Optimizer::fresh_state(const Tensor& parameter) const {
  const MemoryTagScope scope(MemoryTag::optimizer);
  ParameterState state;
  for (std::size_t i = 0; i < state_names_.size(); ++i) {
    TensorOptions options = parameter.options();
    options.dtype = kernels::optimizer_state_dtype(parameter.dtype());
    const Tensor tensor = Tensor::zeros(parameter.shape(), options);
    const bool strided = parameter.numel() > 0;
    state.tensors.push_back(strided ? tensor.as_strided(parameter.shape(), parameter.strides(), 0) : tensor);
  }
  return state;
}

void Optimizer::step() {
  const ProfileRange range("optimizer step");
  const autograd::NoGrad no_grad;
  std::vector<Update> updates;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = gradient_like(parameters_[i]);
    if (!gradient.defined()) continue;
    ParameterState& state = states_[i];
    if (state.step == 0) state = fresh_state(parameters_[i]);
    updates.push_back({parameters_[i], gradient, ++state.step, state.tensors});
  }
  if (!updates.empty()) update(updates);
}

void Optimizer::zero_grad() {
  for (const Tensor& parameter : parameters_) autograd::clear_grad(parameter);
}

std::int64_t Optimizer::steps() const {
  std::int64_t most = 0;
  for (const ParameterState& state : states_) most = std::max(most, state.step);
  return most;
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors result;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].step == 0) continue;
    result.emplace_back(fmt::format("{}.step", i), Tensor::from(std::vector<std::int64_t>{states_[i].step}, {}));
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      result.emplace_back(fmt::format("{}.{}", i, state_names_[k]), states_[i].tensors[k]);
    }
  }
  return result;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  std::vector<ParameterState> loaded(parameters_.size());
  std::size_t used = 0;
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
    if (found != state.end()) ++used;
    return found == state.end() ? Tensor() : found->second;
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor step = find(fmt::format("{}.step", i));
    if (!step.defined()) continue;
    require(step.dtype() == DType::i64 && step.numel() == 1 && step.item() >= 1.0,
            "{}: the state of parameter {} has no valid step count", name_, i);
    loaded[i] = fresh_state(parameters_[i]);
    loaded[i].step = step.to_vector<std::int64_t>().front();
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      const std::string name = fmt::format("{}.{}", i, state_names_[k]);
      const Tensor source = find(name);
      const Tensor& target = loaded[i].tensors[k];
      require(source.defined() && source.shape() == target.shape() && source.dtype() == target.dtype(),
              "{}: the state needs '{}' as {}, got {}", name_, name, describe(target), describe(source));
      target.copy_from(source);
    }
  }
  require(used == state.size(), "{}: {} of the {} entries in the state belong to none of the {} parameters", name_,
          state.size() - used, state.size(), parameters_.size());
  states_ = std::move(loaded);
}

}  // namespace tandem::optim
