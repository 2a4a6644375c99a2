// RMSprop.
#include "tandem/optim/rmsprop.h"

#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/optim/option_checks.h"

namespace tandem::optim {

namespace {
std::vector<std::string> state_names(const RMSpropOptions& options) {
  std::vector<std::string> names{"square_avg"};
  if (options.momentum != 0.0) names.emplace_back("momentum_buffer");
  if (options.centered) names.emplace_back("grad_avg");
  return names;
}
}  // namespace

RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options)
    : Optimizer("RMSprop", std::move(parameters), options.lr, options.master_weights, state_names(options)),
      options_(options) {
  require_rate("RMSprop", "alpha", options.alpha);
  require_not_negative("RMSprop", "eps", options.eps);
  require_not_negative("RMSprop", "momentum", options.momentum);
  require_not_negative("RMSprop", "weight_decay", options.weight_decay);
}

void RMSprop::update(std::span<const Update> updates) {
  std::vector<kernels::RmspropItem> items;
  for (const Update& update : updates) {
    items.push_back({Out(update.parameter), update.gradient, Out(update.state[0]),
                     options_.momentum != 0.0 ? Out(update.state[1]) : Out(),
                     options_.centered ? Out(update.state.back()) : Out(), Out(update.master)});
  }
  kernels::rmsprop_step(
      items, {lr(), options_.alpha, options_.eps, options_.weight_decay, options_.momentum, gradient_factor()});
}

}  // namespace tandem::optim
