// RMSprop.
#include "tandem/optim/rmsprop.h"

#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/optim/option_checks.h"

namespace tandem::optim {

namespace {
// Places in state_names.
constexpr std::size_t kSquareAvg = 0, kMomentumBuffer = 1, kGradAvg = 2;
}  // namespace

RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options)
    : Optimizer("RMSprop", std::move(parameters), options.lr, options.master_weights,
                {"square_avg", "momentum_buffer", "grad_avg"}),
      options_(options) {
  require_rate("RMSprop", "alpha", options.alpha);
  require_not_negative("RMSprop", "eps", options.eps);
  require_not_negative("RMSprop", "momentum", options.momentum);
  require_not_negative("RMSprop", "weight_decay", options.weight_decay);
}

double RMSprop::momentum_of(const ParameterGroup& group) const { return group.momentum.value_or(options_.momentum); }

void RMSprop::check_group(const ParameterGroup& group) const {
  require_not_negative("RMSprop", "a group's momentum", group.momentum.value_or(0.0));
  require_not_negative("RMSprop", "a group's weight_decay", group.weight_decay.value_or(0.0));
}

bool RMSprop::keeps(std::size_t state, const ParameterGroup& group) const {
  if (state == kMomentumBuffer) return momentum_of(group) != 0.0;
  return state == kSquareAvg || options_.centered;
}

kernels::StepFactors RMSprop::factors(const ParameterGroup& group, double lr) const {
  return {.lr = lr, .momentum = momentum_of(group), .weight_decay = group.weight_decay.value_or(options_.weight_decay)};
}

void RMSprop::update(std::span<const Update> updates) {
  std::vector<kernels::RmspropItem> items;
  for (const Update& update : updates) {
    items.push_back({Out(update.parameter), update.gradient, Out(update.state[kSquareAvg]),
                     Out(update.state[kMomentumBuffer]), Out(update.state[kGradAvg]), Out(update.master)});
  }
  kernels::rmsprop_step(items, {.alpha = options_.alpha,
                                .eps = options_.eps,
                                .momentum = momentum_of(group()),
                                .skip = skip(),
                                .control = control(),
                                .loss_scale = loss_scale(),
                                .table = table()});
}

}  // namespace tandem::optim
