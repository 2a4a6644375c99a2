// What users read of optimizers, schedules, loss scaling and averages.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/optim.h"
#include "tests/errors/bad_calls.h"

#include <cmath>

using namespace tandem;
using namespace tandem::optim;
using namespace tandem::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor weight() { return autograd::set_requires_grad(Tensor::zeros({2, 3})); }

std::function<void()> sgd(const SGDOptions& options) {
  return [options] { SGD({weight()}, options); };
}
std::function<void()> adam(const AdamOptions& options) {
  return [options] { Adam({weight()}, options); };
}
std::function<void()> rmsprop(const RMSpropOptions& options) {
  return [options] { RMSprop({weight()}, options); };
}
std::function<void()> muon(const MuonOptions& options) {
  return [options] { Muon({weight()}, options); };
}
std::function<void()> scaler(const GradScalerOptions& options) {
  return [options] { GradScaler{options}; };
}

/// Has made a step.
std::unique_ptr<SGD> stepped(const Tensor& parameter, double momentum = 0.9) {
  auto optimizer = std::make_unique<SGD>(std::vector{parameter}, SGDOptions{.lr = 0.1, .momentum = momentum});
  autograd::set_grad(parameter, Tensor::zeros(parameter.shape()));
  optimizer->step();
  return optimizer;
}

/// A group of these parameters, of an optimizer of another one.
std::function<void()> group(std::vector<Tensor> parameters, ParameterGroup options) {
  options.parameters = std::move(parameters);
  return [options] { SGD({weight()}, {}).add_group(options); };
}
std::function<void()> group_of_one(ParameterGroup options) {
  return [options]() mutable {
    const Tensor w = weight();
    options.parameters = {w};
    SGD({w}, {}).add_group(options);
  };
}

std::unique_ptr<Schedule> constant() { return std::make_unique<ConstantSchedule>(); }

}  // namespace

TEST_CASE("errors of optimizers read as recorded", "[errors]") {
  check_errors(
      "optimizers",
      {
          {"no parameters", [] { SGD({}, {}); }},
          {"an undefined parameter", [] { SGD({weight(), Tensor()}, {}); }},
          {"a parameter of integers", [] { Adam({Tensor::zeros({2}, {.dtype = DType::i64})}, {}); }},
          {"a parameter that is no leaf", [] { SGD({autograd::scale(weight(), 2.0)}, {}); }},
          {"a parameter that is not dense", [] { SGD({Tensor::zeros({4}).narrow(0, 0, 2, 2)}, {}); }},
          {"a parameter twice",
           [] {
             const Tensor w = weight();
             SGD({w, w}, {});
           }},
          {"SGD, lr", sgd({.lr = -0.1})},
          {"SGD, lr NaN", sgd({.lr = kNan})},
          {"SGD, momentum", sgd({.momentum = -0.9})},
          {"SGD, dampening", sgd({.dampening = -0.1})},
          {"SGD, weight_decay", sgd({.weight_decay = HUGE_VAL})},
          {"SGD, nesterov without momentum", sgd({.nesterov = true})},
          {"SGD, nesterov with dampening", sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true})},
          {"Adam, lr", adam({.lr = HUGE_VAL})},
          {"Adam, beta1", adam({.beta1 = 1.0})},
          {"Adam, beta2", adam({.beta2 = -0.1})},
          {"Adam, eps", adam({.eps = -1e-8})},
          {"Adam, weight_decay", adam({.weight_decay = -1.0})},
          {"AdamW, weight_decay", [] { AdamW({weight()}, {.weight_decay = kNan}); }},
          {"RMSprop, lr", rmsprop({.lr = -1.0})},
          {"RMSprop, alpha", rmsprop({.alpha = 1.5})},
          {"RMSprop, eps", rmsprop({.eps = -1.0})},
          {"RMSprop, weight_decay", rmsprop({.weight_decay = -1.0})},
          {"RMSprop, momentum", rmsprop({.momentum = -1.0})},
          {"Muon, lr", muon({.lr = -1.0})},
          {"Muon, momentum", muon({.momentum = kNan})},
          {"Muon, nesterov without momentum", muon({.momentum = 0.0})},
          {"Muon, weight_decay", muon({.weight_decay = -1.0})},
          {"Muon, steps", muon({.newton_schulz = {.steps = 0}})},
          {"Muon, coefficients", muon({.newton_schulz = {.coefficients = {1.0, kNan, 0.0}}})},
          {"Muon, eps", muon({.newton_schulz = {.eps = 0.0}})},
          {"Muon, dtype", muon({.newton_schulz = {.dtype = DType::u8}})},
          {"Muon, another's matrix", muon({.matrices = {weight()}})},
          {"Muon, a matrix of one dimension",
           [] {
             const Tensor bias = autograd::set_requires_grad(Tensor::zeros({3}));
             Muon({bias}, {.matrices = {bias}});
           }},
          {"Muon, a matrix in columns",
           [] {
             const Tensor w = autograd::set_requires_grad(Tensor::zeros({3, 2}).transpose(0, 1));
             Muon({w}, {.matrices = {w}});
           }},
          {"Muon, aux_lr", muon({.aux_lr = -1.0})},
          {"Muon, aux_momentum", muon({.aux_momentum = -1.0})},
          {"Muon, aux_nesterov without momentum", muon({.aux_momentum = 0.0})},
          {"Muon, aux_weight_decay", muon({.aux_weight_decay = kNan})},
          {"newton_schulz, a vector", [] { newton_schulz(Tensor::zeros({3})); }},
          {"a group without parameters", group({}, {})},
          {"a group of an undefined parameter", group({Tensor()}, {})},
          {"a group of another's parameter", group({weight()}, {})},
          {"a group, lr_factor", group_of_one({.lr_factor = -1.0})},
          {"a group, weight_decay", group_of_one({.weight_decay = kNan})},
          {"a group, momentum", group_of_one({.momentum = -0.5})},
          {"a group, freeze_step", group_of_one({.freeze_step = -1})},
          {"a group of Adam, weight_decay",
           [] {
             const Tensor w = weight();
             Adam({w}, {}).add_group({.parameters = {w}, .weight_decay = -1.0});
           }},
          {"a group of Adam, momentum",
           [] {
             const Tensor w = weight();
             Adam({w}, {}).add_group({.parameters = {w}, .momentum = 0.9});
           }},
          {"a group of RMSprop, momentum",
           [] {
             const Tensor w = weight();
             RMSprop({w}, {}).add_group({.parameters = {w}, .momentum = HUGE_VAL});
           }},
          {"a parameter in two groups",
           [] {
             const Tensor w = weight();
             SGD sgd({w}, {});
             sgd.add_group({.parameters = {w}});
             sgd.add_group({.parameters = {w}});
           }},
          {"a group behind a step",
           [] {
             const Tensor w = weight();
             stepped(w)->add_group({.parameters = {w}});
           }},
          {"set_lr_factor", [] { SGD({weight()}, {}).set_lr_factor(kNan); }},
          {"begin_step", [] { SGD({weight()}, {}).begin_step(-1); }},
          {"set_lr", [] { SGD({weight()}, {}).set_lr(-1.0); }},
          {"set_value, another shape", [] { SGD({weight()}, {}).set_value(0, Tensor::zeros({3, 2})); }},
          {"make_optimizer, an unknown name", [] { make_optimizer({weight()}, {.name = "adan"}); }},
          {"make_optimizer, momentum of Adam", [] { make_optimizer({weight()}, {.name = "adam", .momentum = 0.9}); }},
          {"make_optimizer, nesterov of Adam", [] { make_optimizer({weight()}, {.name = "adam", .nesterov = true}); }},
          {"a parameter in another dtype",
           [] {
             const Tensor w = weight();
             const auto optimizer = stepped(w);
             autograd::replace_data(w, w.detach().clone());
             autograd::replace_data(w, Tensor::zeros({2, 3}, {.dtype = DType::f64}));
             autograd::set_grad(w, Tensor::zeros({2, 3}, {.dtype = DType::f64}));
             optimizer->step();
           }},
          {"a gradient added after clipping",
           [] {
             const Tensor w = weight();
             SGD optimizer({w}, {});
             autograd::set_grad(w, Tensor::full({2, 3}, 9.0));
             clip_grad_norm(optimizer, 1.0);
             autograd::set_grad(w, Tensor::full({2, 3}, 9.0));
             optimizer.step();
           }},
          {"a state without a moment",
           [] {
             NamedTensors state = stepped(weight())->state_dict();
             state.pop_back();
             stepped(weight())->load_state_dict(state);
           }},
          {"a state of another shape",
           [] {
             const NamedTensors state = stepped(autograd::set_requires_grad(Tensor::zeros({3})))->state_dict();
             stepped(weight())->load_state_dict(state);
           }},
          {"a state with a stranger",
           [] {
             NamedTensors state = stepped(weight())->state_dict();
             state.emplace_back("7.step", Tensor::full({}, 1.0, {.dtype = DType::i64}));
             stepped(weight())->load_state_dict(state);
           }},
          {"clip_grad_norm, norm 0", [] { clip_grad_norm({weight()}, 0.0); }},
          {"add_l1_gradient", [] { add_l1_gradient({weight()}, -1.0); }},
          {"GradientAccumulation, none", [] { GradientAccumulation(0); }},
          {"GradientAccumulation, a loss of many", [] { GradientAccumulation(2).backward(weight()); }},
      });
}

TEST_CASE("errors of schedules, loss scaling and averages read as recorded", "[errors]") {
  const auto state = [](double scale, std::int64_t tracker) {
    return NamedTensors{{"scale", Tensor::full({}, scale, {.dtype = DType::f64})},
                        {"growth_tracker", Tensor::full({}, static_cast<double>(tracker), {.dtype = DType::i64})}};
  };
  const Tensor w = Tensor::zeros({2});
  check_errors(
      "schedules",
      {
          {"StepSchedule, period", [] { StepSchedule(0.0); }},
          {"StepSchedule, gamma", [] { StepSchedule(3.0, -0.1); }},
          {"MultiStepSchedule, order", [] { MultiStepSchedule({30.0, 20.0}); }},
          {"MultiStepSchedule, a milestone", [] { MultiStepSchedule({-1.0}); }},
          {"CosineSchedule, duration", [] { CosineSchedule(-5.0); }},
          {"CosineSchedule, final_factor", [] { CosineSchedule(5.0, -1.0); }},
          {"LinearSchedule, duration", [] { LinearSchedule(0.0); }},
          {"LinearSchedule, final_factor", [] { LinearSchedule(5.0, -1.0); }},
          {"WarmupSchedule, duration", [] { WarmupSchedule(-1.0, 0.1, constant()); }},
          {"WarmupSchedule, start_factor", [] { WarmupSchedule(5.0, kNan, constant()); }},
          {"WarmupSchedule, nothing after it", [] { WarmupSchedule(5.0, 0.1, nullptr); }},
          {"OneCycleSchedule, total_steps", [] { OneCycleSchedule(0.0); }},
          {"OneCycleSchedule, pct_start", [] { OneCycleSchedule(10.0, {.pct_start = 1.5}); }},
          {"OneCycleSchedule, div_factor", [] { OneCycleSchedule(10.0, {.div_factor = 0.0}); }},
          {"OneCycleSchedule, final_div_factor", [] { OneCycleSchedule(10.0, {.final_div_factor = -1.0}); }},
          {"GradScaler, init_scale", scaler({.init_scale = 0.0})},
          {"GradScaler, init_scale beyond f32", scaler({.init_scale = 1e40})},
          {"GradScaler, growth_factor", scaler({.growth_factor = 1.0})},
          {"GradScaler, backoff_factor", scaler({.backoff_factor = 1.0})},
          {"GradScaler, growth_interval", scaler({.growth_interval = 0})},
          {"GradScaler, unscale() twice",
           [] {
             GradScaler scaler(LossScaling::dynamic);
             SGD optimizer({weight()}, {});
             scaler.unscale(optimizer);
             scaler.unscale(optimizer);
           }},
          {"GradScaler, unscale() after step()",
           [] {
             GradScaler scaler(LossScaling::dynamic);
             SGD optimizer({weight()}, {});
             scaler.step(optimizer);
             scaler.unscale(optimizer);
           }},
          {"GradScaler, step() twice",
           [] {
             GradScaler scaler(LossScaling::dynamic);
             SGD optimizer({weight()}, {});
             scaler.step(optimizer);
             scaler.step(optimizer);
           }},
          {"GradScaler, update() without a step", [] { GradScaler(LossScaling::dynamic).update(); }},
          {"GradScaler, a state without scaling", [=] { GradScaler().load_state_dict(state(1024.0, 3)); }},
          {"GradScaler, half a state", [=] { GradScaler(LossScaling::dynamic).load_state_dict({state(1.0, 1)[0]}); }},
          {"GradScaler, a state of other names",
           [=] {
             GradScaler(LossScaling::dynamic).load_state_dict({state(1.0, 1)[0], {"growth", Tensor::full({}, 1.0)}});
           }},
          {"GradScaler, a scale of 0", [=] { GradScaler(LossScaling::dynamic).load_state_dict(state(0.0, 3)); }},
          {"GradScaler, another fixed scale", [=] { GradScaler(LossScaling::fixed).load_state_dict(state(8.0, 0)); }},
          {"GradScaler, too many good steps",
           [=] { GradScaler(LossScaling::dynamic).load_state_dict(state(8.0, 9999)); }},
          {"ExponentialMovingAverage, decay 1", [=] { ExponentialMovingAverage({{"w", w}}, 1.0); }},
          {"ExponentialMovingAverage, decay 0", [=] { ExponentialMovingAverage({{"w", w}}, 0.0); }},
          {"ExponentialMovingAverage, an undefined tensor", [] { ExponentialMovingAverage({{"w", Tensor()}}, 0.9); }},
          {"ExponentialMovingAverage, a tensor with gaps",
           [] { ExponentialMovingAverage({{"w", Tensor::zeros({4}).narrow(0, 0, 2, 2)}}, 0.9); }},
          {"ExponentialMovingAverage, negative updates",
           [=] { ExponentialMovingAverage({{"w", w}}, 0.9).load({{"w", w}}, -1); }},
          {"ExponentialMovingAverage, another name",
           [=] { ExponentialMovingAverage({{"w", w}}, 0.9).load({{"v", w}}, 1); }},
          {"ExponentialMovingAverage, another shape",
           [=] { ExponentialMovingAverage({{"w", w}}, 0.9).load({{"w", Tensor::zeros({3})}}, 1); }},
          {"Lookahead, every 0", [=] { Lookahead({{"w", w}}, SGD({w}, {.lr = 1.0}), {.every = 0}); }},
          {"Lookahead, decay 1", [=] { Lookahead({{"w", w}}, SGD({w}, {.lr = 1.0}), {.decay = 1.0}); }},
          {"Lookahead, power -1", [=] { Lookahead({{"w", w}}, SGD({w}, {.lr = 1.0}), {.power = -1.0}); }},
          {"Lookahead, a step before the first",
           [=] { Lookahead({{"w", w}}, SGD({w}, {.lr = 1.0}), {}).after_step(0, 10); }},
          {"Lookahead, alpha 1", [] { LookaheadOptions::constant(5, 1.0); }},
          {"Lookahead, another name", [=] { Lookahead({{"w", w}}, SGD({w}, {.lr = 1.0}), {}).load({{"v", w}}, 1); }},
          {"ExponentialMovingAverage, too few", [=] { ExponentialMovingAverage({{"w", w}}, 0.9).load({}, 1); }},
      });
}
