// Stochastic gradient descent with momentum.
#include "tandem/optim/sgd.h"

#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/optim/option_checks.h"

namespace tandem::optim {

namespace {
std::vector<std::string> state_names(const SGDOptions& options) {
  if (options.momentum == 0.0) return {};
  return {"momentum_buffer"};
}
}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer("SGD", std::move(parameters), options.lr, options.master_weights, state_names(options)),
      options_(options) {
  require_not_negative("SGD", "momentum", options.momentum);
  require_not_negative("SGD", "weight_decay", options.weight_decay);
  require_not_negative("SGD", "dampening", options.dampening);
  require(!options.nesterov || (options.momentum > 0.0 && options.dampening == 0.0),
          "SGD: Nesterov momentum needs momentum > 0 and dampening 0, got {} and {}", options.momentum,
          options.dampening);
}

void SGD::update(std::span<const Update> updates) {
  std::vector<kernels::SgdItem> items;
  for (const Update& update : updates) {
    items.push_back({Out(update.parameter), update.gradient, update.state.empty() ? Out() : Out(update.state[0]),
                     update.step == 1, Out(update.master)});
  }
  kernels::sgd_step(items, {lr(), options_.momentum, options_.dampening, options_.weight_decay, options_.nesterov,
                            gradient_factor()});
}

}  // namespace tandem::optim
