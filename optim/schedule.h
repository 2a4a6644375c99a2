// Learning-rate schedules, as factors of the base learning rate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::optim {

/// A pure function of time. Time is counted in epochs or in steps, whichever the schedule was made for; fractions are
/// fine.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// What to multiply the base learning rate by after `time` epochs (or steps); `time` starts at 0.
  virtual double lr_factor(double time) const = 0;
};

/// The factor 1 all the time.
class ConstantSchedule : public Schedule {
 public:
  double lr_factor(double) const override { return 1.0; }
};

/// gamma^floor(time / period): torch.optim.lr_scheduler.StepLR.
class StepSchedule : public Schedule {
 public:
  /// Throws Error for a period that is not above 0, and for a negative gamma.
  explicit StepSchedule(double period, double gamma = 0.1);
  double lr_factor(double time) const override;

 private:
  double period_, gamma_;
};

/// gamma^(number of milestones reached): MultiStepLR.
class MultiStepSchedule : public Schedule {
 public:
  /// Throws Error for milestones that are negative or descend, and for a negative gamma.
  explicit MultiStepSchedule(std::vector<double> milestones, double gamma = 0.1);
  double lr_factor(double time) const override;

 private:
  std::vector<double> milestones_;
  double gamma_;
};

/// From 1 down to `final_factor` along half a cosine over `duration`, where it stays (Loshchilov, Hutter: "SGDR",
/// 2017): CosineAnnealingLR with T_max = duration and eta_min = final_factor * base.
class CosineSchedule : public Schedule {
 public:
  /// Throws Error for a duration that is not above 0, and for a negative final_factor.
  explicit CosineSchedule(double duration, double final_factor = 0.0);
  double lr_factor(double time) const override;

 private:
  double duration_, final_factor_;
};

/// From 1 down to `final_factor` along a straight line over `duration`, where it stays: LinearLR with start_factor = 1,
/// end_factor = final_factor and total_iters = duration.
/// Example:
///     // 476 steps as airbench94 takes them: 109 up from a fifth of the rate, the others down towards 7 % of it.
///     const WarmupSchedule schedule(109, 0.2, std::make_unique<LinearSchedule>(476 - 109, 0.07));
///     const double top = schedule.lr_factor(109);  // 1
class LinearSchedule : public Schedule {
 public:
  /// Throws Error for a duration that is not above 0, and for a negative final_factor.
  explicit LinearSchedule(double duration, double final_factor = 0.0);
  double lr_factor(double time) const override;

 private:
  double duration_, final_factor_;
};

/// A straight line from `start_factor` to 1 over `duration`, then `next` from its own time 0: LinearLR followed by
/// another schedule in a SequentialLR.
/// Example:
///     const WarmupSchedule schedule(5, 0.1, std::make_unique<CosineSchedule>(90));
///     const double first = schedule.lr_factor(0);     // 0.1
///     const double warm = schedule.lr_factor(5);      // 1
///     const double halfway = schedule.lr_factor(50);  // 0.5: for Optimizer::set_lr(base * factor)
class WarmupSchedule : public Schedule {
 public:
  /// Throws Error for a negative duration or factor, and without `next`.
  WarmupSchedule(double duration, double start_factor, std::unique_ptr<Schedule> next);
  double lr_factor(double time) const override;

 private:
  double duration_, start_factor_;
  std::unique_ptr<Schedule> next_;
};

/// PyTorch's names and defaults.
struct OneCycleOptions {
  double pct_start = 0.3;         ///< share of the cycle that rises
  double div_factor = 25.0;       ///< first factor = 1 / div_factor
  double final_div_factor = 1e4;  ///< last factor = first factor / final_div_factor
  bool linear = false;            ///< straight lines in place of half cosines
};

/// Up to 1 and down again (Smith, Topin: "Super-convergence", 2018): OneCycleLR with max_lr = base,
/// cycle_momentum = False. As in PyTorch, the last of `total_steps` steps, time total_steps - 1, has the last factor;
/// it stays there.
class OneCycleSchedule : public Schedule {
 public:
  /// Throws Error unless there are steps, and for options out of range.
  explicit OneCycleSchedule(double total_steps, const OneCycleOptions& options = {});
  double lr_factor(double time) const override;

 private:
  double total_steps_;
  OneCycleOptions options_;
};

}  // namespace tandem::optim
