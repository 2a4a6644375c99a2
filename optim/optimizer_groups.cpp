// Groups of an optimizer's parameters: their options, rates, updates and freezing.
#include "tandem/autograd/variable.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/option_checks.h"

#include <algorithm>
#include <utility>

namespace tandem::optim {

void Optimizer::set_lr(double lr) {
  require_not_negative(name_, "the learning rate", lr);
  base_lr_ = lr;
  lr_factor_ = 1.0;
}

void Optimizer::set_lr_factor(double factor) {
  require_not_negative(name_, "the learning rate's factor", factor);
  lr_factor_ = factor;
}

double Optimizer::lr_of(const ParameterGroup& group, std::int64_t step) const {
  const double factor = group.schedule ? group.schedule->lr_factor(static_cast<double>(step)) : lr_factor_;
  return base_lr_ * factor * group.lr_factor;
}

double Optimizer::lr() const { return current_.lr ? *current_.lr : lr_of(kNoGroup, 0); }

double Optimizer::lr(std::size_t group) const { return lr_of(groups_.at(group), next_step()); }

const ParameterGroup& Optimizer::group_of(std::size_t index) const {
  return group_of_[index] ? groups_[*group_of_[index]] : kNoGroup;
}

void Optimizer::check_group(const ParameterGroup& group) const {
  require(!group.weight_decay, "{}: a group cannot have a weight_decay of its own, as this optimizer has none", name_);
  require(!group.momentum, "{}: a group cannot have a momentum of its own, as this optimizer has none", name_);
}

bool Optimizer::keeps(std::size_t /*state*/, const ParameterGroup& /*group*/) const { return true; }

void Optimizer::add_group(ParameterGroup group) {
  require(!group.parameters.empty(), "{}: a group needs parameters, and got none", name_);
  require_not_negative(name_, "a group's lr_factor", group.lr_factor);
  require(group.freeze_step.value_or(0) >= 0, "{}: a group's freeze_step must be 0 (from the start) or more, got {}",
          name_, group.freeze_step.value_or(0));
  check_group(group);
  settle_counts();
  auto group_of_each = group_of_;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const Tensor& member = group.parameters[i];
    const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&](const Tensor& own) { return member.defined() && own.is_same(member); });
    require(found != parameters_.end(), "{}: parameter {} of the group, {}, is none of this optimizer's {}", name_, i,
            describe(member), parameters_.size());
    const auto index = static_cast<std::size_t>(found - parameters_.begin());
    require(!group_of_each[index], "{}: parameter {}, {}, is in a group already; give each to one", name_, index,
            describe(member));
    require(states_[index].step == 0, "{}: parameter {}, {}, has made steps: add groups before the first one", name_,
            index, describe(member));
    group_of_each[index] = groups_.size();
  }
  groups_.push_back(std::move(group));
  group_of_ = std::move(group_of_each);
  freeze_due_groups();
}

void Optimizer::begin_step(std::int64_t step) {
  require(step >= 0, "{}: steps are counted from 0, and {} was given", name_, step);
  next_step_ = step;
  freeze_due_groups();
}

/// By the number of the next step, which may be one that was before: a state was loaded. Parameters that somebody else
/// has frozen stay so.
void Optimizer::freeze_due_groups() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::optional<std::int64_t> freeze_step = group_of(i).freeze_step;
    if (!freeze_step) continue;
    const bool is_due = next_step() >= *freeze_step;
    if (is_due && autograd::requires_grad(parameters_[i])) {
      autograd::set_requires_grad(parameters_[i], false);
      is_frozen_[i] = true;
    } else if (!is_due && is_frozen_[i]) {
      autograd::set_requires_grad(parameters_[i]);
      is_frozen_[i] = false;
    }
    if (is_due) autograd::clear_grad(parameters_[i]);
  }
}

void Optimizer::end_step() {
  end_factor();
  if (next_step_) ++*next_step_;
  freeze_due_groups();
}

}  // namespace tandem::optim
