// From names to optimizers and schedules.
#include "optimization.h"

#include "core/error.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace tandem::apps {

std::unique_ptr<optim::Optimizer> make_optimizer(const Settings& s, const layers::Module& model) {
  const auto parameters = model.parameters();
  if (s.optimizer == "adam" || s.optimizer == "adamw") {
    optim::AdamOptions options;
    options.lr = *s.lr;
    options.weight_decay = *s.weight_decay;
    options.master_weights = s.master_weights;
    if (s.optimizer == "adam") return std::make_unique<optim::Adam>(parameters, options);
    return std::make_unique<optim::AdamW>(parameters, options);
  }
  if (s.optimizer == "rmsprop") {
    return std::make_unique<optim::RMSprop>(
        parameters,
        optim::RMSpropOptions{
            .lr = *s.lr, .weight_decay = *s.weight_decay, .momentum = *s.momentum, .master_weights = s.master_weights});
  }
  require(s.optimizer == "sgd", "unknown optimizer '{}'", s.optimizer);
  return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = *s.lr,
                                                                    .momentum = *s.momentum,
                                                                    .weight_decay = *s.weight_decay,
                                                                    .nesterov = *s.nesterov,
                                                                    .master_weights = s.master_weights});
}

optim::GradScaler make_scaler(const Settings& s) {
  if (*s.loss_scale == "none") return optim::GradScaler({.mode = optim::LossScaling::none});
  if (*s.loss_scale == "dynamic") return optim::GradScaler();
  return optim::GradScaler({.mode = optim::LossScaling::fixed, .init_scale = std::stod(*s.loss_scale)});
}

std::unique_ptr<optim::Schedule> make_schedule(const Settings& s, std::int64_t steps_per_epoch) {
  if (s.epochs == 0) return std::make_unique<optim::ConstantSchedule>();  // there will be no step
  const auto epoch = static_cast<double>(steps_per_epoch);
  const double warmup = s.warmup_epochs * epoch;
  const double duration = static_cast<double>(s.epochs) * epoch;
  std::unique_ptr<optim::Schedule> schedule;
  if (s.schedule == "one-cycle") {
    schedule = std::make_unique<optim::OneCycleSchedule>(duration);
  } else if (s.schedule == "cosine") {
    schedule = std::make_unique<optim::CosineSchedule>(duration - warmup);
  } else if (s.schedule == "step") {
    schedule = std::make_unique<optim::StepSchedule>(static_cast<double>(*s.step_epochs) * epoch, *s.step_factor);
  } else {
    schedule = std::make_unique<optim::ConstantSchedule>();
  }
  if (warmup <= 0.0) return schedule;
  // Step 0 takes one share of the way up, so that no step is taken at a rate of 0.
  return std::make_unique<optim::WarmupSchedule>(warmup, 1.0 / (warmup + 1.0), std::move(schedule));
}

}  // namespace tandem::apps
