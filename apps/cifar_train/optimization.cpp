// From names to schedules and loss scales.
#include "optimization.h"

#include "tandem/core/error.h"

namespace tandem::apps {

optim::GradScaler make_scaler(const Settings& s) {
  if (*s.loss_scale == "none") return optim::GradScaler();
  if (*s.loss_scale == "dynamic") return optim::GradScaler(optim::LossScaling::dynamic);
  return optim::GradScaler({.mode = optim::LossScaling::fixed, .init_scale = std::stod(*s.loss_scale)});
}

std::unique_ptr<optim::Schedule> make_schedule(const Settings& s, std::int64_t steps_per_epoch) {
  if (s.trainer.epochs == 0 && s.trainer.steps == 0)
    return std::make_unique<optim::ConstantSchedule>();  // there will be no step
  const auto epoch = static_cast<double>(steps_per_epoch);
  const double warmup = s.warmup_steps > 0 ? static_cast<double>(s.warmup_steps) : s.warmup_epochs * epoch;
  const double duration =
      s.trainer.steps > 0 ? static_cast<double>(s.trainer.steps) : static_cast<double>(s.trainer.epochs) * epoch;
  const bool by_steps = s.warmup_steps > 0;
  require(warmup < duration,
          "--warmup-{} {}: {} steps of warm-up must be less than the {} of the run: give fewer, or train longer",
          by_steps ? "steps" : "epochs", by_steps ? warmup : s.warmup_epochs, warmup, duration);
  const double falling = duration - warmup - static_cast<double>(s.final_lr_steps);
  require(falling > 0.0,
          "--final-lr-steps {}: with the warm-up of {} steps it must be less than the {} of the run: give fewer, or "
          "train longer",
          s.final_lr_steps, warmup, duration);
  std::unique_ptr<optim::Schedule> schedule;
  if (s.schedule == "one-cycle") {
    schedule = std::make_unique<optim::OneCycleSchedule>(duration);
  } else if (s.schedule == "cosine") {
    schedule = std::make_unique<optim::CosineSchedule>(falling, s.final_lr_factor);
  } else if (s.schedule == "linear") {
    schedule = std::make_unique<optim::LinearSchedule>(falling, s.final_lr_factor);
  } else if (s.schedule == "step") {
    schedule = std::make_unique<optim::StepSchedule>(static_cast<double>(*s.step_epochs) * epoch, *s.step_factor);
  } else {
    schedule = std::make_unique<optim::ConstantSchedule>();
  }
  if (warmup <= 0.0) return schedule;
  // By default step 0 takes one share of the way up, so that no step is taken at a rate of 0.
  const double start = s.warmup_start_factor.value_or(1.0 / (warmup + 1.0));
  return std::make_unique<optim::WarmupSchedule>(warmup, start, std::move(schedule));
}

}  // namespace tandem::apps
