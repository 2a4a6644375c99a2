// Parameter groups: options, rates and freezing of some of an optimizer's parameters.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/every_optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <memory>

using namespace tandem;
using namespace tandem::test;
using optim::Optimizer;
using optim::ParameterGroup;

namespace {

constexpr std::uint32_t kSteps = 24;

/// What a state holds, by name.
std::map<std::string, std::vector<double>> values_of(const NamedTensors& state) {
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, tensor] : state) values[name] = tensor.to_vector<double>();
  return values;
}

NamedTensors copy_of(const NamedTensors& state) {
  NamedTensors result;
  for (const auto& [name, tensor] : state) result.emplace_back(name, tensor.clone());
  return result;
}

/// An optimizer of one row of the table; Nesterov's momentum where there is that, and any.
std::unique_ptr<Optimizer> make_decaying(const optim::OptimizerEntry& entry, std::vector<Tensor> parameters, double lr,
                                         double weight_decay, std::optional<double> momentum, bool nesterov = true) {
  optim::OptimizerOptions options{.name = std::string(entry.name), .lr = lr, .weight_decay = weight_decay};
  if (entry.momentum) options.momentum = momentum;
  if (entry.has_nesterov) options.nesterov = nesterov && momentum > 0.0;
  return optim::make_optimizer(std::move(parameters), options);
}

/// The rate of step `step` as a factor of the base rate.
const optim::OneCycleSchedule& common_schedule() {
  static const optim::OneCycleSchedule schedule(kSteps);
  return schedule;
}

}  // namespace

TEST_CASE("SGD with groups follows plain loops") {
  struct Options {
    double lr_factor, weight_decay, momentum;
    std::uint32_t steps;
  };
  // Of a channels-last weight in no group and a vector in one.
  const std::array<Options, 2> options{{{1.0, 0.01, 0.85, kSteps}, {64.0, 0.01 / 64.0, 0.5, 17}}};
  constexpr double kLr = 0.01;
  const std::vector<Tensor> parameters = make_parameters(DType::f64);
  optim::SGD sgd(parameters, {.lr = kLr, .momentum = 0.85, .weight_decay = 0.01, .nesterov = true});
  sgd.add_group({.parameters = {parameters[1]},
                 .lr_factor = options[1].lr_factor,
                 .weight_decay = options[1].weight_decay,
                 .momentum = options[1].momentum,
                 .freeze_step = options[1].steps});
  std::vector<std::vector<double>> w, buffers;
  for (const Tensor& parameter : parameters) w.push_back(parameter.to_vector<double>());
  for (const auto& values : w) buffers.emplace_back(values.size(), 0.0);
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const double lr = kLr * common_schedule().lr_factor(step);
    sgd.set_lr_factor(common_schedule().lr_factor(step));
    CHECK(sgd.lr() == lr);
    CHECK(sgd.lr(0) == lr * 64.0);
    for (std::size_t p = 0; p < 2; ++p) {
      set_gradient(parameters[p], step);
      const std::vector<double> gradient = autograd::grad(parameters[p]).to_vector<double>();
      const Options& o = options[p];
      for (std::size_t i = 0; i < w[p].size() && step < o.steps; ++i) {
        const double g = gradient[i] + o.weight_decay * w[p][i];
        buffers[p][i] = step == 0 ? g : o.momentum * buffers[p][i] + g;
        w[p][i] -= lr * o.lr_factor * (g + o.momentum * buffers[p][i]);
      }
    }
    sgd.step();
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<double> actual = parameters[p].to_vector<double>();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        INFO("parameter " << p << ", element " << i << ", step " << step);
        // A dozen roundings a step of numbers no larger than the weight and a step's update (64 * lr * 6 gradients).
        REQUIRE(std::abs(actual[i] - w[p][i]) <= (step + 1.0) * 16.0 * 0x1p-53 * (std::abs(w[p][i]) + 10.0));
      }
    }
  }
}

// A group is what an optimizer of its own would be: every bit, so that one check holds of all dtypes and masters.
TEST_CASE("a group's parameters go as by an optimizer with its options") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const double momentum = GENERATE(0.0, 0.85), group_momentum = GENERATE(0.0, 0.5);
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    CAPTURE(entry.name, momentum, group_momentum, name_of(dtype));
    const std::vector<Tensor> all = make_parameters(dtype), apart = make_parameters(dtype);
    constexpr double kLr = 0.01, kFactor = 3.0, kDecay = 0.1, kGroupDecay = 0.02;
    const auto grouped = make_decaying(entry, all, kLr, kDecay, momentum);
    ParameterGroup group{.parameters = {all[0]}, .lr_factor = kFactor, .weight_decay = kGroupDecay};
    if (entry.momentum) group.momentum = group_momentum;
    grouped->add_group(group);
    const bool nesterov = momentum > 0.0;  // which is the optimizer's
    const auto first = make_decaying(entry, {apart[0]}, kLr, kGroupDecay, group_momentum, nesterov),
               second = make_decaying(entry, {apart[1]}, kLr, kDecay, momentum);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const double factor = common_schedule().lr_factor(step);
      grouped->set_lr_factor(factor);
      first->set_lr(kLr * factor * kFactor);
      second->set_lr(kLr * factor);
      for (const auto& parameters : {all, apart})
        for (const Tensor& parameter : parameters) set_gradient(parameter, step);
      grouped->scale_gradients(0.5);
      first->scale_gradients(0.5);
      second->scale_gradients(0.5);
      grouped->step();
      first->step();
      second->step();
    }
    for (std::size_t i = 0; i < 2; ++i) CHECK(all[i].to_vector<double>() == apart[i].to_vector<double>());
    auto expected = values_of(first->state_dict());
    for (const auto& [name, values] : values_of(second->state_dict())) expected["1" + name.substr(1)] = values;
    CHECK(values_of(grouped->state_dict()) == expected);
  }
}

TEST_CASE("a group's own schedule takes the place of the common factor") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  optim::SGD sgd(parameters, {.lr = 0.5});
  sgd.add_group(
      {.parameters = {parameters[1]}, .lr_factor = 4.0, .schedule = std::make_shared<optim::StepSchedule>(2.0, 0.5)});
  for (std::uint32_t step = 0; step < 6; ++step) {
    const double expected = 0.5 * 4.0 * std::array{1.0, 1.0, 0.5, 0.5, 0.25, 0.25}[step];
    sgd.set_lr_factor(0.125);
    CHECK(sgd.lr() == 0.0625);
    CHECK(sgd.lr(0) == expected);
    const float before = parameters[1].to_vector<float>()[0];
    set_gradient(parameters[1], step);
    const float gradient = autograd::grad(parameters[1]).to_vector<float>()[0];
    sgd.step();
    CHECK(parameters[1].to_vector<float>()[0] == Approx(before - expected * gradient).epsilon(1e-5));
  }
  sgd.set_lr(2.0);  // the base rate of all
  CHECK(sgd.lr() == 2.0);
  CHECK(sgd.base_lr() == 2.0);
  CHECK(sgd.lr(0) == 2.0 * 4.0 * 0.125);
  sgd.begin_step(0);
  CHECK(sgd.lr(0) == 8.0);
}

TEST_CASE("a frozen group stays as it is and wants no gradient") {
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    CAPTURE(entry.name);
    const std::vector<Tensor> parameters = make_parameters(DType::bf16);
    const auto optimizer =
        make_decaying(entry, parameters, 0.01, 0.1, entry.momentum ? std::optional(0.9) : std::nullopt);
    optimizer->add_group({.parameters = {parameters[0]}, .freeze_step = 3});
    run_steps(*optimizer, 0, 1);
    CHECK(autograd::requires_grad(parameters[0]));
    const std::vector<double> before = parameters[0].to_vector<double>();
    run_steps(*optimizer, 2, 2);
    CHECK(parameters[0].to_vector<double>() != before);
    CHECK_FALSE(autograd::requires_grad(parameters[0]));
    CHECK_FALSE(autograd::grad(parameters[0]).defined());
    CHECK(autograd::requires_grad(parameters[1]));
    auto state = values_of(optimizer->state_dict());
    const std::vector<double> frozen = parameters[0].to_vector<double>(), other = parameters[1].to_vector<double>();
    run_steps(*optimizer, 3, 9);  // with gradients, which count for nothing
    CHECK(parameters[0].to_vector<double>() == frozen);
    CHECK(parameters[1].to_vector<double>() != other);
    CHECK(optimizer->steps() == 10);
    for (const auto& [name, values] : values_of(optimizer->state_dict())) {
      CAPTURE(name);
      CHECK((state[name] == values) == name.starts_with("0."));
    }
  }
}

TEST_CASE("steps that are told count for freezing, skipped ones too") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  optim::SGD sgd(parameters, {.lr = 0.1});
  sgd.add_group({.parameters = {parameters[0]}, .freeze_step = 2});
  sgd.skip_step();
  sgd.skip_step();
  sgd.skip_step();
  CHECK(autograd::requires_grad(parameters[0]));  // by steps(), which is 0
  sgd.begin_step(0);
  sgd.skip_step();
  CHECK(autograd::requires_grad(parameters[0]));
  sgd.skip_step();
  CHECK_FALSE(autograd::requires_grad(parameters[0]));
  sgd.begin_step(1);
  CHECK(autograd::requires_grad(parameters[0]));
  sgd.begin_step(7);
  CHECK_FALSE(autograd::requires_grad(parameters[0]));
}

TEST_CASE("what a program has frozen itself no group thaws") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  autograd::set_requires_grad(parameters[0], false);
  optim::SGD sgd(parameters, {.lr = 0.1});
  sgd.add_group({.parameters = parameters, .freeze_step = 2});
  sgd.begin_step(5);
  CHECK_FALSE(autograd::requires_grad(parameters[1]));
  sgd.begin_step(0);
  CHECK(autograd::requires_grad(parameters[1]));
  CHECK_FALSE(autograd::requires_grad(parameters[0]));
}

TEST_CASE("backward leaves out what only a frozen parameter would need") {
  const Tensor x = Tensor::full({2, 3}, 2.0);
  const Tensor w = autograd::set_requires_grad(Tensor::full({3}, 1.0)),
               b = autograd::set_requires_grad(Tensor::full({3}, 1.0));
  optim::SGD sgd({w, b}, {.lr = 0.125, .weight_decay = 0.5});
  sgd.add_group({.parameters = {w}, .freeze_step = 1});
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    autograd::backward(autograd::sum(autograd::add(autograd::mul(x, w), b)));
    CHECK(autograd::grad(w).defined() == (step == 0));
    CHECK(autograd::grad(b).defined());
    sgd.step();
  }
  CHECK(w.to_vector<float>() == std::vector<float>(3, 1.0f - 0.125f * (4.0f + 0.5f)));
}

TEST_CASE("a run with groups goes on with the same bits on both sides of the freezing step") {
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    const auto make_grouped = [&](const std::vector<Tensor>& parameters) {
      auto optimizer = make_decaying(entry, parameters, 0.01, 0.1, entry.momentum ? std::optional(0.9) : std::nullopt);
      optimizer->add_group({.parameters = {parameters[0]},
                            .lr_factor = 2.0,
                            .schedule = std::make_shared<optim::CosineSchedule>(8.0),
                            .freeze_step = 5});
      return optimizer;
    };
    const std::vector<Tensor> whole = make_parameters(DType::bf16);
    const auto uninterrupted = make_grouped(whole);
    std::vector<NamedTensors> states{copy_of(uninterrupted->state_dict())};
    std::vector<std::vector<std::vector<double>>> weights;
    const auto note = [&] { weights.push_back({whole[0].to_vector<double>(), whole[1].to_vector<double>()}); };
    note();
    for (std::uint32_t step = 0; step < 8; ++step) {
      run_steps(*uninterrupted, step, step);
      states.push_back(copy_of(uninterrupted->state_dict()));
      note();
    }
    for (const bool into_one_that_went_on : {false, true}) {
      for (std::uint32_t left = 0; left <= 8; ++left) {
        CAPTURE(entry.name, left, into_one_that_went_on);
        const std::vector<Tensor> parameters = make_parameters(DType::bf16);
        const auto resumed = make_grouped(parameters);
        if (into_one_that_went_on) run_steps(*resumed, 0, 6);
        for (std::size_t i = 0; i < 2; ++i)
          resumed->set_value(i, Tensor::from(weights[left][i], parameters[i].shape()));
        resumed->load_state_dict(states[left]);
        CHECK(autograd::requires_grad(parameters[0]) == (left < 5));
        if (left < 8) run_steps(*resumed, left, 7);
        CHECK(parameters[0].to_vector<double>() == weights[8][0]);
        CHECK(parameters[1].to_vector<double>() == weights[8][1]);
        CHECK(values_of(resumed->state_dict()) == values_of(states[8]));
      }
    }
  }
}

TEST_CASE("a group without momentum keeps no buffer, and a state of other groups is refused") {
  const auto make_sgd = [](std::optional<double> momentum) {
    auto sgd = std::make_unique<optim::SGD>(make_parameters(DType::f32), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    sgd->add_group({.parameters = {sgd->parameters()[0]}, .momentum = momentum});
    run_steps(*sgd, 1, 2);
    return sgd;
  };
  const auto with = make_sgd({}), without = make_sgd(0.0);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : without->state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"0.step", "1.step", "1.momentum_buffer"});
  CHECK_THAT(error_of([&] { with->load_state_dict(without->state_dict()); }),
             ContainsText("SGD: the state needs '0.momentum_buffer' as f32[3, 5, 3, 3], got undefined tensor"));
  CHECK_THAT(error_of([&] { without->load_state_dict(with->state_dict()); }),
             ContainsText("1 of the 4 entries in the state belong to none of the 2 parameters"));
}

TEST_CASE("optimizers of one's own get the rates of groups") {
  class Descent final : public Optimizer {
   public:
    explicit Descent(std::vector<Tensor> parameters) : Optimizer("Descent", std::move(parameters), 0.5, false, {}) {}
    std::vector<std::pair<std::size_t, double>> calls;  // parameters, rate

   protected:
    void update(std::span<const Update> updates) override { calls.emplace_back(updates.size(), lr()); }
  };
  const std::vector<Tensor> some = make_parameters(DType::f32), others = make_parameters(DType::f32);
  Descent descent({some[0], some[1], others[0], others[1]});
  descent.add_group({.parameters = {some[1], others[0]}, .lr_factor = 3.0});
  descent.add_group({.parameters = {some[0]}, .lr_factor = 5.0});
  run_steps(descent, 1, 1);
  CHECK(descent.calls == std::vector<std::pair<std::size_t, double>>{{1, 0.5}, {2, 1.5}, {1, 2.5}});
  CHECK(descent.lr() == 0.5);
  CHECK(descent.groups().size() == 2);
  CHECK_THAT(error_of([&] { Descent({others[1]}).add_group({.parameters = {others[1]}, .weight_decay = 0.1}); }),
             ContainsText("Descent: a group cannot have a weight_decay of its own, as this optimizer has none"));
}

TEST_CASE("a loss scale skips steps of groups as of all") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  optim::SGD sgd(parameters, {.lr = 0.1, .momentum = 0.9});
  sgd.add_group({.parameters = {parameters[1]}, .lr_factor = 64.0});
  optim::GradScaler scaler({.init_scale = 8.0});
  run_steps(sgd, 0, 1);
  const auto before = contents(sgd);
  for (const Tensor& parameter : parameters) set_gradient(parameter, 2);
  autograd::grad(parameters[1]).fill(std::numeric_limits<double>::infinity());
  CHECK_FALSE(scaler.step(sgd));
  CHECK(contents(sgd) == before);
}
