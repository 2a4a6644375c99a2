// Scales, and when to skip.
#include "tandem/optim/grad_scaler.h"

#include "tandem/core/profiler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::optim {

namespace {

// Scales are multiplied into f32 losses, and their inverses into f32 gradients.
constexpr double kLargestScale = 0x1p126, kSmallestScale = 0x1p-126;

void check(const GradScalerOptions& o) {
  if (o.mode == LossScaling::none) return;
  require(o.init_scale >= kSmallestScale && o.init_scale <= kLargestScale,
          "GradScaler: the scale must be a number above 0 that f32 can hold, got {}", o.init_scale);
  if (o.mode == LossScaling::fixed) return;
  require(std::isfinite(o.growth_factor) && o.growth_factor > 1.0,
          "GradScaler: the growth factor must be above 1, got {}", o.growth_factor);
  require(o.backoff_factor > 0.0 && o.backoff_factor < 1.0,
          "GradScaler: the backoff factor must lie between 0 and 1, got {}", o.backoff_factor);
  require(o.growth_interval >= 1, "GradScaler: the growth interval must be at least 1 step, got {}", o.growth_interval);
}

Tensor find(const NamedTensors& state, std::string_view name, DType dtype) {
  const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
  require(
      found != state.end() && found->second.defined() && found->second.dtype() == dtype && found->second.numel() == 1,
      "GradScaler: the state needs '{}', one {}", name, name_of(dtype));
  return found->second;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(options.mode == LossScaling::none ? 1.0 : options.init_scale) {
  check(options);
}

void GradScaler::unscale(Optimizer& optimizer) {
  if (options_.mode == LossScaling::none) return;
  if (const auto known = optimizers_.find(&optimizer); known != optimizers_.end()) {
    require(
        known->second.stage != Stage::unscaled,
        "GradScaler: unscale() was called twice on one optimizer since the last update(); call that behind each step");
    fail("GradScaler: unscale() was called after step(); it comes before");
  }
  const ProfileRange range("check gradients");
  optimizer.scale_gradients(1.0 / scale());
  optimizers_[&optimizer] = {Stage::unscaled, FiniteCheck(gradients_of(optimizer.parameters()))};
}

FiniteCheck GradScaler::step(Optimizer& optimizer) {
  if (options_.mode == LossScaling::none) {
    optimizer.step();
    return {};
  }
  if (!optimizers_.contains(&optimizer)) unscale(optimizer);
  OptimizerState& state = optimizers_.at(&optimizer);
  require(state.stage != Stage::stepped,
          "GradScaler: step() was called twice on one optimizer since the last update(); call that behind each step");
  state.stage = Stage::stepped;
  optimizer.step_if(state.check);
  return state.check;
}

void GradScaler::update() {
  if (options_.mode == LossScaling::none) return;
  require(!optimizers_.empty(), "GradScaler: update() without a step() since the last one; call step(optimizer) first");
  settle();
  for (const auto& [optimizer, state] : optimizers_) last_checks_.push_back(state.check);
  optimizers_.clear();
}

void GradScaler::settle() const {
  if (last_checks_.empty()) return;
  const bool good =
      std::all_of(last_checks_.begin(), last_checks_.end(), [](const auto& check) { return check.passed(); });
  last_checks_.clear();
  if (!good) ++skipped_steps_;
  if (options_.mode == LossScaling::fixed) return;
  if (!good) {
    scale_ = std::max(scale_ * options_.backoff_factor, kSmallestScale);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    scale_ = std::min(scale_ * options_.growth_factor, kLargestScale);
    growth_tracker_ = 0;
  }
}

double GradScaler::scale() const {
  settle();
  return scale_;
}

std::int64_t GradScaler::skipped_steps() const {
  settle();
  return skipped_steps_;
}

NamedTensors GradScaler::state_dict() const {
  if (options_.mode == LossScaling::none) return {};
  settle();
  return {{"scale", Tensor::full({}, scale_, {.dtype = DType::f64})},
          {"growth_tracker", Tensor::from(std::vector<std::int64_t>{growth_tracker_}, {})}};
}

void GradScaler::load_state_dict(const NamedTensors& state) {
  const bool scales = options_.mode != LossScaling::none;
  require(scales || state.empty(), "GradScaler: a state with a loss scale does not go with a run without one");
  if (!scales) return;
  require(state.size() == 2, "GradScaler: a state has 2 entries, scale and growth_tracker; got {}", state.size());
  const double scale = find(state, "scale", DType::f64).item();
  const std::int64_t tracker = find(state, "growth_tracker", DType::i64).to_vector<std::int64_t>().front();
  require(scale >= kSmallestScale && scale <= kLargestScale,
          "GradScaler: the state has a scale of {}, which is not a number above 0 that f32 can hold", scale);
  require(options_.mode == LossScaling::dynamic || scale == options_.init_scale,
          "GradScaler: the state has a scale of {}, this run a fixed one of {}; give that as init_scale", scale,
          options_.init_scale);
  require(tracker >= 0 && (tracker < options_.growth_interval || options_.mode == LossScaling::fixed),
          "GradScaler: the state counts {} good steps, but the scale grows after {}", tracker,
          options_.growth_interval);
  settle();
  scale_ = scale;
  growth_tracker_ = tracker;
  optimizers_.clear();
}

}  // namespace tandem::optim
