// What all optimizers share.
#include "tandem/optim/optimizer.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/profiler.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <algorithm>
#include <cstring>

namespace tandem::optim {

namespace {

/// A new tensor of another dtype, laid out like a dense one.
Tensor empty_in_strides_of(const Tensor& model, DType dtype) {
  const Tensor tensor = Tensor::empty(model.shape(), {dtype, Layout::row_major, model.device()});
  return model.numel() > 0 ? tensor.as_strided(model.shape(), model.strides(), 0) : tensor;
}

/// The gradient in the strides of the parameter.
Tensor gradient_like(const Tensor& parameter) {
  const Tensor gradient = autograd::grad(parameter);
  if (!gradient.defined() || gradient.strides() == parameter.strides()) return gradient;
  const Tensor copy = empty_in_strides_of(parameter, gradient.dtype());
  copy.copy_from(gradient);
  return copy;
}

}  // namespace

const ParameterGroup Optimizer::kNoGroup{};

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = autograd::grad(parameter);
    if (gradient.defined()) gradients.push_back(gradient);
  }
  return gradients;
}

Optimizer::Optimizer(std::string name, std::vector<Tensor> parameters, double lr, bool master_weights,
                     std::vector<std::string> state_names)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      masters_(parameters_.size()),
      group_of_(parameters_.size()),
      is_frozen_(parameters_.size(), false),
      current_{.group = &kNoGroup},
      state_names_(std::move(state_names)),
      states_(parameters_.size()) {
  require(!parameters_.empty(),
          "{}: got no parameters; a module's are those that its constructor registers (register_parameter(), "
          "register_module(), or add_parameter() and add_module()), and its children's",
          name_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    require(parameter.defined() && is_floating(parameter.dtype()),
            "{}: parameter {} must be a dense floating leaf, got {}", name_, i, describe(parameter));
    require(
        autograd::is_leaf(parameter),
        "{}: parameter {} must be a dense floating leaf, and {} was made by a recorded operation; give what that was "
        "made of, or its detach()",
        name_, i, describe(parameter));
    require(parameter.is_dense(),
            "{}: parameter {} must be a dense floating leaf, and {} has strides {}; give its contiguous()", name_, i,
            describe(parameter), to_string(parameter.strides()));
    const bool repeated = std::any_of(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const Tensor& other) { return other.is_same(parameter); });
    require(!repeated, "{}: parameter {}, {}, is given twice; give each once", name_, i, describe(parameter));
  }
  for (const Tensor& parameter : parameters_) homes_.push_back({parameter.dtype(), parameter.device()});
  set_lr(lr);
  if (master_weights) make_masters();
}

void Optimizer::check_home(std::size_t index) {
  const Tensor& parameter = parameters_[index];
  const Home now{parameter.dtype(), parameter.device()};
  Home& home = homes_[index];
  if (now == home) return;
  const bool keeps_something = states_[index].step > 0 || masters_[index].defined();
  require(now.dtype == home.dtype && !keeps_something,
          "{}: parameter {} was {} on {} when the optimizer was made or made its last step, and is now {} on {}: make "
          "the optimizer after to() and set_precision()",
          name_, index, name_of(home.dtype), name_of(home.device), name_of(now.dtype), name_of(now.device));
  home = now;
}

void Optimizer::make_masters() {
  const MemoryTagScope scope(MemoryTag::optimizer);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (is_half(parameters_[i].dtype())) masters_[i] = autograd::cast(parameters_[i].detach(), DType::f32);
  }
}

void Optimizer::check_index(std::size_t index) const {
  require(index < parameters_.size(), "{}: there is no parameter {}: it has {}, counted from 0", name_, index,
          parameters_.size());
}

Tensor Optimizer::master(std::size_t index) const {
  check_index(index);
  return masters_[index];
}

void Optimizer::set_value(std::size_t index, const Tensor& value) {
  check_index(index);
  const Tensor& parameter = parameters_[index];
  require(value.defined() && is_floating(value.dtype()) && value.shape() == parameter.shape(),
          "{}: parameter {} is {}, and cannot be set to {}", name_, index, describe(parameter), describe(value));
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor plain = value.detach();
  parameter.copy_from(autograd::cast(plain, parameter.dtype()));
  if (masters_[index].defined()) masters_[index].copy_from(autograd::cast(plain, DType::f32));
}

Optimizer::ParameterState Optimizer::fresh_state(std::size_t index) const {
  const MemoryTagScope scope(MemoryTag::optimizer);
  const Tensor& parameter = parameters_[index];
  ParameterState state;
  for (std::size_t i = 0; i < state_names_.size(); ++i) {
    state.tensors.emplace_back();
    if (!keeps(i, group_of(index))) continue;
    state.tensors.back() = empty_in_strides_of(parameter, kernels::optimizer_state_dtype(parameter.dtype()));
    state.tensors.back().zero();
  }
  return state;
}

kernels::StepFactors Optimizer::factors(const ParameterGroup& /*group*/, double lr) const { return {.lr = lr}; }

std::vector<kernels::StepFactors> Optimizer::more_factors(const ParameterGroup& /*group*/, double /*lr*/) const {
  return {};
}

Tensor Optimizer::control(std::size_t kind) {
  require(current_.lr.has_value(), "{}: control() is for update(), which nobody has called", name_);
  current_.control = control_.row(current_.row, current_.device);
  return control_.row(kind * kept_.size() + current_.row, current_.device);
}

kernels::TableCache* Optimizer::table() {
  require(current_.lr.has_value(), "{}: table() is for update(), which nobody has called", name_);
  return &kept_[current_.row].table;
}

/// Whether there is something to update in it.
bool Optimizer::is_due(std::size_t row, std::int64_t step) const {
  const std::optional<std::int64_t> freeze_step = group_of_row(row).freeze_step;
  if (freeze_step && step >= *freeze_step) return false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (row_of(i) == row && autograd::grad(parameters_[i]).defined()) return true;
  }
  return false;
}

/// Of all groups before the first kernel, so that they are copied together.
void Optimizer::set_factors(std::int64_t step) {
  step_of_factors_ = step;
  kept_.resize(groups_.size() + 1);
  control_.resize(kept_.size() * (1 + more_factors(kNoGroup, 0.0).size()));
  const double gradient_factor = control_gradient_factor();  // once, as it may wait for a GPU
  for (std::size_t row = 0; row < kept_.size(); ++row) {
    if (!is_due(row, step)) continue;
    const ParameterGroup& group = group_of_row(row);
    const double lr = lr_of(group, step);
    std::vector<kernels::StepFactors> of_row = more_factors(group, lr);
    of_row.insert(of_row.begin(), factors(group, lr));
    for (std::size_t kind = 0; kind < of_row.size(); ++kind) {
      of_row[kind].gradient_factor = gradient_factor;
      control_.set(kind * kept_.size() + row, of_row[kind]);
    }
  }
}

Tensor Optimizer::counts_on(Device device, std::size_t row, const std::vector<std::int64_t>& steps) const {
  CountsOnGpu& counts = kept_[row].counts;
  Stream stream = current_stream(device);
  if (counts.steps == steps && counts.stream == stream) return counts.tensor;
  const MemoryTagScope scope(MemoryTag::workspace);
  std::vector<kernels::AdamCount> values;
  for (const std::int64_t count : steps) values.push_back({.steps = count});
  const Shape shape{static_cast<std::int64_t>(steps.size()), sizeof(kernels::AdamCount)};
  const Tensor here = Tensor::empty(shape, {.dtype = DType::u8, .pinned = true});
  std::memcpy(Out(here).raw_data(), values.data(), values.size() * sizeof(kernels::AdamCount));
  // Others may still be read where they are on another stream.
  if (!counts.tensor.defined() || !(counts.stream == stream))
    counts.tensor = Tensor::empty(shape, {.dtype = DType::u8, .device = device});
  counts.tensor.copy_from_async(here);
  counts.stream = std::move(stream);
  counts.steps = steps;
  return counts.tensor;
}

/// Of the parameters of a row that have a gradient.
void Optimizer::update_group(std::size_t row, std::int64_t step) {
  if (!is_due(row, step)) return;
  const ParameterGroup& group = group_of_row(row);
  std::vector<Update> updates;
  std::vector<std::size_t> places;
  std::vector<std::int64_t> before(parameters_.size(), 0);  // counts
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (row_of(i) != row) continue;
    ParameterState& state = states_[i];
    before[i] = state.step;
    const Tensor gradient = gradient_like(parameters_[i]);
    if (!gradient.defined()) continue;
    if (state.step == 0) state = fresh_state(i);
    places.push_back(i);
    updates.push_back({parameters_[i], gradient, masters_[i], ++state.step, state.tensors, {}});
  }
  const Device device = updates.front().parameter.device();
  const bool counts_there = counts_on_gpu() && device.type == DeviceType::cuda;
  if (counts_there) {
    const Tensor counts = counts_on(device, row, before);
    for (std::size_t k = 0; k < updates.size(); ++k) {
      const auto place = static_cast<std::int64_t>(places[k]);
      updates[k].count = counts.narrow(0, place, 1).view({counts.size(1)});
    }
  }
  current_ = {.group = &group, .lr = lr_of(group, step), .row = row, .device = device};
  try {
    update(updates);
    if (WorkGraph::is_recording()) note_recorded(updates, step);
  } catch (...) {
    current_ = {.group = &kNoGroup};
    throw;
  }
  current_ = {.group = &kNoGroup};
  if (!counts_there) return;
  for (const std::size_t i : places) kept_[row].counts.steps[i] = states_[i].step;
}

void Optimizer::step() {
  settle_counts();
  take_step();
}

void Optimizer::step_if(const FiniteCheck& check) {
  // Without begin_step() it depends on the counts what is frozen from the next step on.
  const bool asks_counts = !next_step_ && std::any_of(groups_.begin(), groups_.end(), [](const ParameterGroup& group) {
    return group.freeze_step.has_value();
  });
  if (check.is_known() || !looks_at_skip() || asks_counts) {
    if (check.passed()) {
      step();
    } else {
      skip_step();
    }
    return;
  }
  settle_counts();
  std::vector<std::int64_t> before;
  for (const ParameterState& state : states_) before.push_back(state.step);
  const auto note_counts = [&] {
    skip_ = {};
    const bool is_launch = std::exchange(skip_is_recorded_, false);  // each has an answer of its own
    unsettled_ = {{.check = is_launch ? FiniteCheck() : check, .parameters = {}, .is_launch = is_launch}};
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].step != before[i]) unsettled_.back().parameters.push_back(i);
    }
  };
  skip_ = check.found();
  skip_is_recorded_ = check.is_recorded();
  try {
    take_step();
  } catch (...) {
    note_counts();  // kernels of the groups before may have skipped as well
    throw;
  }
  note_counts();
}

void Optimizer::settle_counts(std::size_t but) const {
  while (unsettled_.size() > but) {
    const UnsettledStep step = std::move(unsettled_.front());
    unsettled_.erase(unsettled_.begin());
    if (step.check.passed()) continue;
    for (const std::size_t i : step.parameters) {
      std::vector<std::int64_t>& there = kept_[row_of(i)].counts.steps;
      if (!there.empty() && there[i] == states_[i].step) --there[i];  // as the GPU has not counted it either
      if (--states_[i].step == 0) states_[i] = {};                    // as before the first step
    }
  }
}

void Optimizer::take_step() {
  const ProfileRange range("optimizer step");
  const autograd::NoGrad no_grad;
  settle_factor();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    check_home(i);
    if (autograd::grad(parameters_[i]).defined()) check_parameter(parameters_[i]);
  }
  const std::int64_t step = next_step();
  set_factors(step);
  if (WorkGraph::is_recording()) recorded_.assign(kept_.size(), {});
  for (std::size_t row = 0; row < kept_.size(); ++row) update_group(row, step);
  end_step();
}

std::int64_t Optimizer::steps() const {
  settle_counts();
  std::int64_t most = 0;
  for (const ParameterState& state : states_) most = std::max(most, state.step);
  return most;
}

NamedTensors Optimizer::state_dict() const {
  settle_counts();
  NamedTensors result;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (masters_[i].defined()) result.emplace_back(fmt::format("{}.master", i), masters_[i]);
    if (states_[i].step == 0) continue;
    result.emplace_back(fmt::format("{}.step", i), Tensor::from(std::vector<std::int64_t>{states_[i].step}, {}));
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      if (!states_[i].tensors[k].defined()) continue;
      result.emplace_back(fmt::format("{}.{}", i, state_names_[k]), states_[i].tensors[k]);
    }
  }
  return result;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  const autograd::NoGrad no_grad;  // of values only, whoever wants gradients of them
  std::vector<ParameterState> loaded(parameters_.size());
  std::vector<Tensor> masters(parameters_.size());
  std::size_t used = 0;
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
    if (found != state.end()) ++used;
    return found == state.end() ? Tensor() : found->second;
  };
  const auto find_like = [&](const std::string& name, const Tensor& model) {
    const Tensor source = find(name);
    require(source.defined() && source.shape() == model.shape() && source.dtype() == model.dtype(),
            "{}: the state needs '{}' as {}, got {}", name_, name, describe(model), describe(source));
    return source;
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (masters_[i].defined()) masters[i] = find_like(fmt::format("{}.master", i), masters_[i]);
    const Tensor step = find(fmt::format("{}.step", i));
    if (!step.defined()) continue;
    require(step.dtype() == DType::i64 && step.numel() == 1 && step.item() >= 1.0,
            "{}: the state of parameter {} has no valid step count", name_, i);
    loaded[i] = fresh_state(i);
    loaded[i].step = step.to_vector<std::int64_t>().front();
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      const Tensor& target = loaded[i].tensors[k];
      if (!target.defined()) continue;
      target.copy_from(find_like(fmt::format("{}.{}", i, state_names_[k]), target));
    }
  }
  require(used == state.size(), "{}: {} of the {} entries in the state belong to none of the {} parameters", name_,
          state.size() - used, state.size(), parameters_.size());
  unsettled_.clear();
  kept_.clear();
  recorded_.clear();
  states_ = std::move(loaded);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (masters[i].defined()) set_value(i, masters[i]);
  }
  next_step_.reset();
  freeze_due_groups();
}

}  // namespace tandem::optim
