// Learning-rate schedules in closed form.
#include "tandem/optim/schedule.h"

#include "tandem/core/error.h"
#include "tandem/optim/option_checks.h"

#include <algorithm>
#include <numbers>

namespace tandem::optim {

namespace {

/// From `start` to `end` along half a cosine; `share` in [0, 1].
double half_cosine(double start, double end, double share) {
  return end + (start - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
}

double straight(double start, double end, double share) { return start + (end - start) * share; }

void require_positive(std::string_view who, std::string_view what, double value) {
  require(std::isfinite(value) && value > 0.0, "{}: {} must be a number > 0, got {}", who, what, value);
}

}  // namespace

StepSchedule::StepSchedule(double period, double gamma) : period_(period), gamma_(gamma) {
  require_positive("step schedule", "the period", period);
  require_not_negative("step schedule", "gamma", gamma);
}

double StepSchedule::lr_factor(double time) const { return std::pow(gamma_, std::floor(time / period_)); }

MultiStepSchedule::MultiStepSchedule(std::vector<double> milestones, double gamma)
    : milestones_(std::move(milestones)), gamma_(gamma) {
  require_not_negative("multi-step schedule", "gamma", gamma);
  for (std::size_t i = 0; i < milestones_.size(); ++i) {
    require_not_negative("multi-step schedule", "a milestone", milestones_[i]);
    require(i == 0 || milestones_[i] >= milestones_[i - 1],
            "multi-step schedule: milestone {} comes after {}; they must ascend", milestones_[i], milestones_[i - 1]);
  }
}

double MultiStepSchedule::lr_factor(double time) const {
  const auto reached = std::upper_bound(milestones_.begin(), milestones_.end(), time) - milestones_.begin();
  return std::pow(gamma_, static_cast<double>(reached));
}

CosineSchedule::CosineSchedule(double duration, double final_factor)
    : duration_(duration), final_factor_(final_factor) {
  require_positive("cosine schedule", "the duration", duration);
  require_not_negative("cosine schedule", "the final factor", final_factor);
}

double CosineSchedule::lr_factor(double time) const {
  return half_cosine(1.0, final_factor_, std::min(time / duration_, 1.0));
}

LinearSchedule::LinearSchedule(double duration, double final_factor)
    : duration_(duration), final_factor_(final_factor) {
  require_positive("linear schedule", "the duration", duration);
  require_not_negative("linear schedule", "the final factor", final_factor);
}

double LinearSchedule::lr_factor(double time) const {
  return straight(1.0, final_factor_, std::min(time / duration_, 1.0));
}

WarmupSchedule::WarmupSchedule(double duration, double start_factor, std::unique_ptr<Schedule> next)
    : duration_(duration), start_factor_(start_factor), next_(std::move(next)) {
  require_not_negative("warm-up", "the duration", duration);
  require_not_negative("warm-up", "the start factor", start_factor);
  require(next_ != nullptr,
          "warm-up: needs a schedule to continue with, such as a ConstantSchedule, got a null pointer");
}

double WarmupSchedule::lr_factor(double time) const {
  if (time < duration_) return straight(start_factor_, 1.0, time / duration_);
  return next_->lr_factor(time - duration_);
}

OneCycleSchedule::OneCycleSchedule(double total_steps, const OneCycleOptions& options)
    : total_steps_(total_steps), options_(options) {
  require_positive("one-cycle schedule", "the number of steps", total_steps);
  require(options.pct_start >= 0.0 && options.pct_start <= 1.0,
          "one-cycle schedule: pct_start must lie in [0, 1], got {}", options.pct_start);
  require_positive("one-cycle schedule", "div_factor", options.div_factor);
  require_positive("one-cycle schedule", "final_div_factor", options.final_div_factor);
}

double OneCycleSchedule::lr_factor(double time) const {
  const double first = 1.0 / options_.div_factor, last = first / options_.final_div_factor;
  const double peak = options_.pct_start * total_steps_ - 1.0, end = total_steps_ - 1.0;
  const auto anneal = options_.linear ? straight : half_cosine;
  if (time <= peak) return anneal(first, 1.0, peak > 0.0 ? time / peak : 1.0);
  if (time >= end) return last;
  // A peak before the first step (pct_start * total_steps < 1) leaves only the way down, joined in mid-course.
  return anneal(1.0, last, (time - peak) / (end - peak));
}

}  // namespace tandem::optim
