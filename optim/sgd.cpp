// Stochastic gradient descent with momentum.
#include "tandem/optim/sgd.h"

#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/optim/option_checks.h"

namespace tandem::optim {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer("SGD", std::move(parameters), options.lr, options.master_weights, {"momentum_buffer"}),
      options_(options) {
  require_not_negative("SGD", "momentum", options.momentum);
  require_not_negative("SGD", "weight_decay", options.weight_decay);
  require_not_negative("SGD", "dampening", options.dampening);
  require(!options.nesterov || (options.momentum > 0.0 && options.dampening == 0.0),
          "SGD: Nesterov momentum needs momentum > 0 and dampening 0, got {} and {}", options.momentum,
          options.dampening);
}

double SGD::momentum_of(const ParameterGroup& group) const { return group.momentum.value_or(options_.momentum); }

void SGD::check_group(const ParameterGroup& group) const {
  require_not_negative("SGD", "a group's momentum", group.momentum.value_or(0.0));
  require_not_negative("SGD", "a group's weight_decay", group.weight_decay.value_or(0.0));
}

bool SGD::keeps(std::size_t /*state*/, const ParameterGroup& group) const { return momentum_of(group) != 0.0; }

kernels::StepFactors SGD::factors(const ParameterGroup& group, double lr) const {
  return {.lr = lr, .momentum = momentum_of(group), .weight_decay = group.weight_decay.value_or(options_.weight_decay)};
}

void SGD::update(std::span<const Update> updates) {
  std::vector<kernels::SgdItem> items;
  for (const Update& update : updates) {
    items.push_back(
        {Out(update.parameter), update.gradient, Out(update.state[0]), update.step == 1, Out(update.master)});
  }
  kernels::sgd_step(items, {.momentum = momentum_of(group()),
                            .dampening = options_.dampening,
                            .nesterov = options_.nesterov,
                            .skip = skip(),
                            .control = control(),
                            .loss_scale = loss_scale(),
                            .table = table()});
}

}  // namespace tandem::optim
