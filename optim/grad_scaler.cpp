// Scales, and when to skip.
#include "tandem/optim/grad_scaler.h"

#include "tandem/core/memory.h"
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

kernels::LossScaleState state_of(double scale, std::int64_t good_steps, std::int64_t skipped_steps) {
  return {.scale = scale, .inverse = 1.0 / scale, .good_steps = good_steps, .skipped_steps = skipped_steps};
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), here_(state_of(options.mode == LossScaling::none ? 1.0 : options.init_scale, 0, 0)) {
  check(options);
}

GradScaler::GradScaler(const GradScaler& other)
    : options_(other.options_), optimizers_(other.optimizers_), here_(other.now()) {}

GradScaler& GradScaler::operator=(const GradScaler& other) {
  if (this == &other) return *this;
  options_ = other.options_;
  optimizers_ = other.optimizers_;
  here_ = other.now();
  there_ = on_its_way_ = {};
  last_checks_.clear();
  return *this;
}

kernels::LossScaleRule GradScaler::rule() const {
  return {.is_fixed = options_.mode == LossScaling::fixed,
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .least = kSmallestScale,
          .most = kLargestScale};
}

void GradScaler::move_to(Device device) {
  const bool is_gpu = device.type == DeviceType::cuda;
  if (is_gpu ? there_.defined() && there_.device() == device : !there_.defined()) return;
  const kernels::LossScaleState state = now();
  there_ = is_gpu ? kernels::make_loss_scale(device, state) : Tensor();
}

const kernels::LossScaleState& GradScaler::now() const {
  if (on_its_way_.defined()) {
    arrived_.synchronize();
    here_ = kernels::read_loss_scale(on_its_way_);
    on_its_way_ = {};
  }
  if (last_checks_.empty()) return here_;
  const bool good =
      std::all_of(last_checks_.begin(), last_checks_.end(), [](const auto& check) { return check.passed(); });
  last_checks_.clear();
  here_ = kernels::next_loss_scale(here_, !good, rule());
  return here_;
}

Tensor GradScaler::start_gradient(const Tensor& loss, double share) const {
  if (!there_.defined() || there_.device() != loss.device())
    return Tensor::full(loss.shape(), share * scale(), loss.options());
  const Tensor gradient = Tensor::empty(loss.shape(), loss.options());
  kernels::fill_loss_scale(there_, share, Out(gradient));
  return gradient;
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
  move_to(optimizer.parameters().front().device());
  if (there_.defined()) {
    optimizer.remove_loss_scale(there_);
  } else {
    optimizer.scale_gradients(now().inverse);
  }
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
  std::vector<Tensor> found;
  bool all_there = there_.defined();
  for (const auto& [optimizer, state] : optimizers_) {
    found.push_back(state.check.found());
    all_there = all_there && found.back().defined() && found.back().device() == there_.device();
  }
  if (all_there && found.size() <= kernels::kMostFoundWords) {
    change_there(found);
  } else {
    move_to(Device{});
    now();
    for (const auto& [optimizer, state] : optimizers_) last_checks_.push_back(state.check);
  }
  optimizers_.clear();
}

/// The GPU does, and the host gets a copy.
void GradScaler::change_there(const std::vector<Tensor>& found) {
  kernels::update_loss_scale(found, rule(), Out(there_));
  const MemoryTagScope scope(MemoryTag::workspace);
  on_its_way_ = Tensor::empty(there_.shape(), {.dtype = there_.dtype(), .pinned = true});
  on_its_way_.copy_from_async(there_);
  arrived_.record(current_stream(there_.device()));
}

double GradScaler::scale() const { return now().scale; }

std::int64_t GradScaler::skipped_steps() const { return now().skipped_steps; }

NamedTensors GradScaler::state_dict() const {
  if (options_.mode == LossScaling::none) return {};
  return {{"scale", Tensor::full({}, now().scale, {.dtype = DType::f64})},
          {"growth_tracker", Tensor::from(std::vector<std::int64_t>{now().good_steps}, {})}};
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
  here_ = state_of(scale, tracker, now().skipped_steps);
  if (there_.defined()) there_.copy_from(kernels::make_loss_scale(Device{}, here_));
  optimizers_.clear();
}

}  // namespace tandem::optim
