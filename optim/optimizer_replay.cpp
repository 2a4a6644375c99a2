// Steps that a graph repeats: what they go by, and whether a launch would be the step that is due.
#include "tandem/autograd/variable.h"
#include "tandem/core/error.h"
#include "tandem/core/not_repeatable.h"
#include "tandem/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tandem::optim {

std::vector<const void*> Optimizer::addresses_of(std::size_t row, std::int64_t step) const {
  std::vector<const void*> addresses;
  if (!is_due(row, step)) return addresses;
  const auto add = [&](const Tensor& tensor) { addresses.push_back(tensor.defined() ? tensor.raw_data() : nullptr); };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = autograd::grad(parameters_[i]);
    if (row_of(i) != row || !gradient.defined()) continue;
    for (const Tensor& tensor : {parameters_[i], gradient, masters_[i]}) add(tensor);
    for (const Tensor& tensor : states_[i].tensors) add(tensor);
  }
  return addresses;
}

void Optimizer::note_recorded(std::span<const Update> updates, std::int64_t step) {
  recorded_[current_.row] = {
      .addresses = addresses_of(current_.row, step),
      .table = kept_[current_.row].table,
      .control = current_.control,
      .on_gpu = current_.device.type == DeviceType::cuda,
      .was_first = std::ranges::any_of(updates, [](const Update& update) { return update.step == 1; }),
      .may_have_skipped = skip_.defined(),
      .decides_anew = skip_is_recorded_,
      .loss_scale = loss_scale_,
      .clips = is_clipped(),
      .clip_table = clipping_.table};
}

void Optimizer::settle_launch(const FiniteCheck& taken) {
  if (!unsettled_.empty() && unsettled_.back().is_launch)
    unsettled_.back() = {.check = taken, .parameters = std::move(unsettled_.back().parameters)};
}

std::int64_t Optimizer::fewest_steps() const {
  settle_counts();
  std::optional<std::int64_t> fewest;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (autograd::grad(parameters_[i]).defined()) fewest = std::min(fewest.value_or(states_[i].step), states_[i].step);
  return fewest.value_or(0);
}

Optimizer::Counts Optimizer::counts_now() const {
  Counts counts{.next_step = next_step_, .unsettled = unsettled_.size()};
  for (const ParameterState& state : states_) counts.steps.push_back(state.step);
  for (const Kept& kept : kept_) counts.steps_there.push_back(kept.counts.steps);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    counts.gradients.push_back(group_of(i).freeze_step ? autograd::grad(parameters_[i]) : Tensor());
  return counts;
}

void Optimizer::prepare_recording() {
  before_ = {};  // what an earlier one was before is not what there is if this throws
  settle_counts();
  settle_factor();
  recorded_.clear();  // what only the last recording still had is not freed within the next one
  set_factors(next_step());
  control_.upload();
  before_ = counts_now();
}

void Optimizer::abandon_recording() {
  recorded_.clear();
  abandon_launch();
}

void Optimizer::abandon_launch() {
  const Counts before = std::exchange(before_, {});
  if (before.steps.size() != states_.size()) return;
  next_step_ = before.next_step;
  for (std::size_t i = 0; i < states_.size(); ++i) states_[i].step = before.steps[i];
  for (std::size_t row = 0; row < before.steps_there.size() && row < kept_.size(); ++row)
    kept_[row].counts.steps = before.steps_there[row];
  while (unsettled_.size() > before.unsettled) unsettled_.pop_back();
  freeze_due_groups();  // a group that this step was the last one of is trained again, and has its gradients
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool was_dropped = before.gradients[i].defined() && !autograd::grad(parameters_[i]).defined();
    if (was_dropped && autograd::requires_grad(parameters_[i])) autograd::set_grad(parameters_[i], before.gradients[i]);
  }
}

void Optimizer::prepare_replay() {
  before_ = {};
  settle_counts(1);  // of the launch under way, counts are taken back later
  settle_factor();
  const std::int64_t step = next_step();
  const auto check = [&](bool holds, std::string_view reason) {
    if (holds) return;
    throw NotRepeatable(fmt::format(
        "{}: a recorded step() cannot be replayed: {}; take this step by step(), and record the next one anew", name_,
        reason));
  };
  check(!recorded_.empty(), "there was none, or a state was loaded since");
  check(recorded_.size() == groups_.size() + 1, "a group was added since");
  bool any = false;
  for (std::size_t row = 0; row < recorded_.size(); ++row) {
    const Recorded& was = recorded_[row];
    check(was.addresses == addresses_of(row, step),
          "a parameter, its gradient or its state is elsewhere now, or was not there");
    if (was.addresses.empty()) continue;
    check(was.on_gpu, "the CPU records nothing");
    check(!was.was_first, "it was the first one of a parameter");
    check(was.may_have_skipped == was.decides_anew, "a check on the device decided whether to skip it");
    check(!was.loss_scale.defined() || was.decides_anew || was.clips,
          "a loss scale on the device is a factor of its gradients");
    check(!loss_scale_.defined() || (was.loss_scale.defined() && loss_scale_.raw_data() == was.loss_scale.raw_data()),
          "a loss scale on the device is a factor of its gradients");
    check(was.control.defined(), "its kernels do not go by numbers on the device");
    any = true;
  }
  check(any, "it had no gradients");
  for (std::size_t i = 0; i < parameters_.size(); ++i) check_home(i);
  set_factors(step);
  control_.upload();
  for (std::size_t row = 0; row < recorded_.size(); ++row) {
    const Recorded& was = recorded_[row];
    if (was.addresses.empty()) continue;
    check(control_.row(row, was.control.device()).raw_data() == was.control.raw_data(),
          "a step() on another stream has moved the numbers that its kernels read");
  }
  before_ = counts_now();
  UnsettledStep launched{.check = {}, .parameters = {}, .is_launch = true};
  bool may_skip = false;
  for (std::size_t row = 0; row < recorded_.size(); ++row) {
    if (recorded_[row].addresses.empty()) continue;
    may_skip = may_skip || recorded_[row].may_have_skipped;
    std::vector<std::int64_t>& there = kept_[row].counts.steps;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (row_of(i) != row || !autograd::grad(parameters_[i]).defined()) continue;
      ++states_[i].step;
      launched.parameters.push_back(i);
      if (!there.empty()) there[i] = states_[i].step;
    }
  }
  if (may_skip) unsettled_.push_back(std::move(launched));
  end_step();
}

}  // namespace tandem::optim
