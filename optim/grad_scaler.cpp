// Scales, and when to skip.
#include "tandem/optim/grad_scaler.h"

#include "tandem/core/memory.h"
#include "tandem/core/profiler.h"
#include "tandem/core/work_graph.h"
#include "tandem/optim/copy_to_host.h"

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
  leave_old_scale();
  options_ = other.options_;
  optimizers_ = other.optimizers_;
  set(other.now());
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

const kernels::LossScaleState& GradScaler::now() const {
  if (!on_its_way_.defined()) return here_;
  if (!changed_.is_done()) changed_.synchronize();
  here_ = kernels::read_loss_scale(on_its_way_);
  on_its_way_ = {};
  return here_;
}

void GradScaler::set(const kernels::LossScaleState& state) {
  here_ = state;
  on_its_way_ = {};
  if (!there_.defined()) return;
  begin_change();
  there_.copy_from(kernels::make_loss_scale(Device{}, state));
  end_change();
}

const Tensor& GradScaler::read_there() const {
  const Stream now = current_stream(there_.device());
  // A launch of what is recorded comes later, and not from here.
  if (!(now == changed_on_) && !WorkGraph::is_recording()) now.wait(changed_);
  if (std::find(readers_.begin(), readers_.end(), now) == readers_.end()) readers_.push_back(now);
  there_.storage()->record_stream(now);
  return there_;
}

void GradScaler::begin_change() {
  const Stream now = current_stream(there_.device());
  if (!(now == changed_on_)) now.wait(changed_);
  for (const Stream& reader : readers_) {
    if (reader == now) continue;
    Event read;
    read.record(reader);
    now.wait(read);
  }
  readers_.clear();
  there_.storage()->record_stream(now);
}

void GradScaler::end_change() {
  changed_on_ = current_stream(there_.device());
  changed_.record(changed_on_);
}

Tensor GradScaler::start_gradient(const Tensor& loss, double share) const {
  if (there_.defined() && there_.device() == loss.device()) {
    const Tensor gradient = Tensor::empty(loss.shape(), loss.options());
    kernels::fill_loss_scale(read_there(), share, Out(gradient));
    return gradient;
  }
  require(options_.mode == LossScaling::none || loss.device() == Device{} || !WorkGraph::is_recording(),
          "GradScaler: the scale is not in the memory of {}, so that recorded work would keep that of now: take a step "
          "of parameters there before it is recorded",
          name_of(loss.device()));
  return Tensor::full(loss.shape(), share * scale(), loss.options());
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
  const Device device = optimizer.parameters().front().device();
  if (!there_.defined() && device.type == DeviceType::cuda) {
    there_ = kernels::make_loss_scale(device, now());
    end_change();
  }
  const bool is_there = there_.defined() && there_.device() == device;
  const Tensor loss_scale = is_there ? read_there().detach() : kernels::make_loss_scale(device, now());
  optimizer.remove_loss_scale(loss_scale);
  optimizers_[&optimizer] = {Stage::unscaled, FiniteCheck(gradients_of(optimizer.parameters()), &tables_[&optimizer]),
                             loss_scale};
}

bool GradScaler::is_shared(const Tensor& loss_scale) const {
  return there_.defined() && loss_scale.storage() == there_.storage();
}

void GradScaler::leave_old_scale() {
  for (const auto& [optimizer, state] : optimizers_) {
    if (state.stage != Stage::unscaled || !is_shared(state.loss_scale)) continue;
    const MemoryTagScope scope(MemoryTag::workspace);
    state.loss_scale.set_data(read_there().clone());  // the optimizer has another handle of it
  }
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
  if (is_shared(state.loss_scale)) {
    read_there();  // as the update does
  } else {
    state.loss_scale.storage()->record_stream(current_stream(state.loss_scale.device()));
  }
  optimizer.step_if(state.check);
  return state.check;
}

void GradScaler::update() {
  if (options_.mode == LossScaling::none) return;
  require(!optimizers_.empty(), "GradScaler: update() without a step() since the last one; call step(optimizer) first");
  leave_old_scale();
  std::vector<Tensor> found;
  bool all_there = there_.defined();
  for (const auto& [optimizer, state] : optimizers_) {
    const Tensor word = state.check.found();
    if (word.defined()) {
      all_there = all_there && word.device() == there_.device();
      found.push_back(word);
    } else {  // known: of the CPU, or of no gradients
      all_there = all_there && state.check.passed();
    }
  }
  if (all_there && found.size() <= kernels::kMostFoundWords) {
    change_there(found);
  } else {
    const bool good = std::all_of(optimizers_.begin(), optimizers_.end(),
                                  [](const auto& entry) { return entry.second.check.passed(); });
    set(kernels::next_loss_scale(now(), !good, rule()));
  }
  optimizers_.clear();
}

/// The GPU does, and the host gets a copy.
void GradScaler::change_there(const std::vector<Tensor>& found) {
  begin_change();
  kernels::update_loss_scale(found, rule(), Out(there_));
  if (!WorkGraph::is_recording()) return fetch();
  require(optimizers_.size() == 1,
          "GradScaler: update() behind {} optimizers cannot be recorded: whether a launch takes a step is known of one",
          optimizers_.size());
  Optimizer* const stepped = optimizers_.begin()->first;
  WorkGraph::with_each_launch([this, stepped, table = tables_[stepped]] { note_launch(*stepped); });  // it reads that
}

void GradScaler::fetch() {
  on_its_way_ = begin_copy_to_host(there_);
  end_change();
}

void GradScaler::note_launch(Optimizer& stepped) {
  launched_step_ = FiniteCheck::of_word(kernels::was_skipped(there_));
  stepped.settle_launch(launched_step_);
  fetch();
}

void GradScaler::abandon_step() { optimizers_.clear(); }

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
  leave_old_scale();
  set(state_of(scale, tracker, now().skipped_steps));
  optimizers_.clear();
}

}  // namespace tandem::optim
