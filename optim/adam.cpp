// Adam and AdamW.
#include "tandem/optim/adam.h"

#include "tandem/kernels/optimizer/adam.h"
#include "tandem/optim/option_checks.h"

namespace tandem::optim {

namespace {
std::vector<std::string> state_names(const AdamOptions& options) {
  if (options.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}
}  // namespace

Adam::Adam(const std::string& name, std::vector<Tensor> parameters, const AdamOptions& options,
           bool decoupled_weight_decay)
    : Optimizer(name, std::move(parameters), options.lr, options.master_weights, state_names(options)),
      options_(options),
      decoupled_weight_decay_(decoupled_weight_decay) {
  require_rate(name, "beta1", options.beta1);
  require_rate(name, "beta2", options.beta2);
  require_not_negative(name, "eps", options.eps);
  require_not_negative(name, "weight_decay", options.weight_decay);
}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : Adam("AdamW", std::move(parameters),
           {.lr = options.lr,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .eps = options.eps,
            .weight_decay = options.weight_decay,
            .amsgrad = options.amsgrad,
            .master_weights = options.master_weights},
           true) {}

void Adam::check_group(const ParameterGroup& group) const {
  require_not_negative(name(), "a group's weight_decay", group.weight_decay.value_or(0.0));
  require(!group.momentum, "{}: a group cannot have a momentum of its own, as this optimizer has none", name());
}

kernels::StepFactors Adam::factors(const ParameterGroup& group, double lr) const {
  return kernels::factors_of({.lr = lr,
                              .weight_decay = group.weight_decay.value_or(options_.weight_decay),
                              .decoupled_weight_decay = decoupled_weight_decay_});
}

void Adam::update(std::span<const Update> updates) {
  std::vector<kernels::AdamItem> items;
  for (const Update& update : updates) {
    items.push_back({Out(update.parameter), update.gradient, Out(update.state[0]), Out(update.state[1]),
                     options_.amsgrad ? Out(update.state[2]) : Out(), update.step, Out(update.master),
                     Out(update.count)});
  }
  kernels::adam_step(items, {.beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .eps = options_.eps,
                             .skip = skip(),
                             .control = control(),
                             .loss_scale = loss_scale(),
                             .table = table()});
}

}  // namespace tandem::optim
