// What a step of an optimizer launches and copies, and that it can be recorded.
#include "tandem/autograd/variable.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/optim/ema.h"
#include "tandem/optim/lookahead.h"
#include "tandem/simulator/runtime.h"
#include "tests/optim/changing_steps.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

struct Work {
  std::int64_t launches = 0, copies = 0, bytes = 0;
  friend bool operator==(const Work&, const Work&) = default;
};

std::ostream& operator<<(std::ostream& stream, const Work& work) {
  return stream << work.launches << " launches, " << work.copies << " copies of " << work.bytes << " bytes";
}

template <typename Call>
Work work_of(Call&& call) {
  const simulator::RuntimeCounts& counts = simulator::runtime_counts();
  const Work before{counts.launches, counts.copies_to_device, counts.bytes_to_device};
  call();
  return {counts.launches - before.launches, counts.copies_to_device - before.copies,
          counts.bytes_to_device - before.bytes};
}

constexpr std::int64_t kRow = sizeof(kernels::StepFactors);

/// A step as in a WorkGraph, but that it is taken at once.
void record_step(optim::Optimizer& optimizer) {
  const cuda::RecordingScope scope;
  optimizer.step();
}

/// Parameters on the GPU that have gradients.
std::vector<Tensor> parameters_with_gradients(DType dtype) {
  std::vector<Tensor> parameters = parameters_on(kGpu, dtype);
  for (const Tensor& parameter : parameters) set_gradient(parameter, 1);
  return parameters;
}

}  // namespace

TEST_CASE("a step copies what has changed, at once for all groups, and launches its kernels", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : kRules) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      CAPTURE(static_cast<int>(rule), name_of(dtype));
      const std::vector<Tensor> parameters = parameters_with_gradients(dtype);
      const auto optimizer = make_changing(rule, parameters);
      for (int step = 0; step < 2; ++step)
        optimizer->step();  // the second one has tables of buffers that hold something
      const bool counts = rule == Rule::adam || rule == Rule::adamw;
      const std::int64_t launches = counts ? 4 : 2;
      const auto step = [&] { optimizer->step(); };
      CHECK(work_of(step) == Work{launches, 0, 0});
      optimizer->set_lr_factor(0.5);
      CHECK(work_of(step) == Work{launches, 1, 2 * kRow});
      CHECK(work_of(step) == Work{launches, 0, 0});
      optimizer->scale_gradients(0.5);
      CHECK(work_of(step) == Work{launches, 1, 2 * kRow});  // the factor
      CHECK(work_of(step) == Work{launches, 1, 2 * kRow});  // that it is 1 again
      const Tensor old = autograd::grad(parameters[1]);
      set_gradient(parameters[1], 2);
      CHECK(work_of(step).copies == 1);  // the table of its group
      CHECK(work_of(step) == Work{launches, 0, 0});
    }
  }
}

TEST_CASE("a step can be recorded once tables and numbers are there, a skipped one too", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : kRules) {
    CAPTURE(static_cast<int>(rule));
    const std::vector<Tensor> parameters = parameters_with_gradients(DType::f16);
    const auto optimizer = make_changing(rule, parameters);
    const auto record = [&](const optim::FiniteCheck& check) {
      return error_of([&] {
        const cuda::RecordingScope scope;
        optimizer->step_if(check);
      });
    };
    CHECK_THAT(record({}), ContainsText("cannot be recorded; do it before the WorkGraph is made"));
    for (int step = 0; step < 2; ++step) optimizer->step();
    CHECK(record({}) == "no error");
    const auto before = contents(*optimizer);
    CHECK(record(optim::FiniteCheck(optim::gradients_of(parameters))) == "no error");
    CHECK(contents(*optimizer) != before);
    const optim::FiniteCheck bad(
        std::vector<Tensor>{Tensor::full({1}, static_cast<double>(INFINITY), {.device = kGpu})});
    const auto as_it_was = contents(*optimizer);
    CHECK(record(bad) == "no error");
    CHECK(contents(*optimizer) == as_it_was);
    CHECK(record({}) == "no error");  // counts are still those of the device
    optimizer->set_lr_factor(0.5);
    CHECK_THAT(record({}), ContainsText("cannot be recorded"));
  }
}

// What the host does for a replay; test_cuda_replayed_steps.cpp launches it.
TEST_CASE("before a replay the host copies what has changed, and counts the step", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : kRules) {
    CAPTURE(static_cast<int>(rule));
    const std::vector<Tensor> parameters = parameters_with_gradients(DType::f16);
    const auto optimizer = make_changing(rule, parameters);
    for (int step = 0; step < 2; ++step) optimizer->step();
    record_step(*optimizer);
    const auto prepare = [&] { optimizer->prepare_replay(); };
    CHECK(work_of(prepare) == Work{0, 0, 0});
    optimizer->set_lr_factor(0.25);
    optimizer->scale_gradients(0.5);
    CHECK(work_of(prepare) == Work{0, 1, 2 * kRow});
    CHECK(optimizer->gradient_factor() == 1.0);
    CHECK(optimizer->steps() == 5);
    CHECK(work_of(prepare) == Work{0, 1, 2 * kRow});  // the factor is 1 again
    CHECK(work_of(prepare) == Work{0, 0, 0});
    CHECK(optimizer->steps() == 7);
    CHECK(optimizer->state_dict().back().second.defined());
  }
}

namespace {

/// What keeps the next launch from being the next step; "no error": nothing, and that step is counted.
std::string refusal_of(optim::Optimizer& optimizer) {
  const std::int64_t steps = optimizer.steps();
  const double factor = optimizer.gradient_factor();
  const std::string text = error_of([&] { optimizer.prepare_replay(); });
  CHECK(optimizer.steps() == steps + (text == "no error" ? 1 : 0));
  if (text != "no error") CHECK(optimizer.gradient_factor() == factor);
  return text;
}

void take_steps(optim::Optimizer& optimizer, int count) {
  for (int step = 0; step < count; ++step) optimizer.step();
}

}  // namespace

TEST_CASE("a replay that would be another step is refused", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const std::vector<Tensor> parameters = parameters_with_gradients(DType::f32);
  const auto optimizer = make_changing(Rule::adam, parameters);
  const auto refusal = [&] { return refusal_of(*optimizer); };
  take_steps(*optimizer, 2);
  CHECK_THAT(refusal(), ContainsText("Adam: a recorded step() cannot be replayed: there was none"));
  record_step(*optimizer);
  CHECK(refusal() == "no error");
  autograd::clear_grad(parameters[1]);
  CHECK_THAT(refusal(), ContainsText("a parameter, its gradient or its state is elsewhere now"));
  take_steps(*optimizer, 1);
  record_step(*optimizer);
  CHECK(refusal() == "no error");  // of the first parameter alone
  set_gradient(parameters[1], 1);
  CHECK_THAT(refusal(), ContainsText("or was not there"));
  take_steps(*optimizer, 1);
  const optim::FiniteCheck finite(optim::gradients_of(parameters));
  {
    const cuda::RecordingScope scope;
    optimizer->step_if(finite);
  }
  CHECK_THAT(refusal(), ContainsText("a check on the device decided"));
  record_step(*optimizer);
  CHECK(refusal() == "no error");
  optimizer->remove_loss_scale(kernels::make_loss_scale(kGpu, {}));
  CHECK_THAT(refusal(), ContainsText("a loss scale on the device"));
  record_step(*optimizer);
  CHECK_THAT(refusal(), ContainsText("a loss scale on the device"));
  NamedTensors saved;
  for (const auto& [name, tensor] : optimizer->state_dict()) saved.emplace_back(name, tensor.clone());
  optimizer->load_state_dict(saved);
  CHECK_THAT(refusal(), ContainsText("or a state was loaded since"));
  take_steps(*optimizer, 1);
  CHECK_THAT(refusal(), ContainsText("or a state was loaded since"));
  optimizer->zero_grad();
  record_step(*optimizer);
  CHECK_THAT(refusal(), ContainsText("it had no gradients"));
}

TEST_CASE("a replay is of the step that was recorded, whatever steps were taken since", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : {Rule::sgd, Rule::adam}) {
    CAPTURE(static_cast<int>(rule));
    const std::vector<Tensor> parameters = parameters_with_gradients(DType::f32);
    const auto optimizer = make_changing(rule, parameters);
    const auto refusal = [&] { return refusal_of(*optimizer); };
    take_steps(*optimizer, 2);
    record_step(*optimizer);
    const Tensor recorded = autograd::grad(parameters[1]);
    set_gradient(parameters[1], 2);
    take_steps(*optimizer, 1);
    CHECK_THAT(refusal(), ContainsText("its gradient or its state is elsewhere now"));
    autograd::set_grad(parameters[1], recorded);
    CHECK(refusal() == "no error");
    {
      const StreamScope scope{Stream(kGpu)};
      CHECK_THAT(refusal(), ContainsText("step control: its numbers on cuda:0 are read on another stream"));
      synchronize(kGpu);
      take_steps(*optimizer, 1);
      synchronize(kGpu);
      CHECK_THAT(refusal(), ContainsText("a step() on another stream has moved the numbers that its kernels read"));
    }
    CHECK_THAT(refusal(), ContainsText("step control: its numbers on cuda:0 are read on another stream"));
    take_steps(*optimizer, 1);
    CHECK_THAT(refusal(), ContainsText("a step() on another stream has moved the numbers that its kernels read"));
    record_step(*optimizer);
    CHECK(refusal() == "no error");
  }
}

TEST_CASE("a replay is refused behind a group that was added", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f32);
  optim::SGD sgd(parameters, {.lr = 0.5});
  set_gradient(parameters[0], 1);
  take_steps(sgd, 2);
  record_step(sgd);
  CHECK(refusal_of(sgd) == "no error");
  sgd.add_group({.parameters = {parameters[1]}, .lr_factor = 2.0});
  CHECK_THAT(refusal_of(sgd), ContainsText("a group was added since"));
  take_steps(sgd, 1);
  CHECK_THAT(refusal_of(sgd), ContainsText("a group was added since"));
}

namespace {

/// Has no kernels, and takes its rate by value or from the device.
class ByHand final : public optim::Optimizer {
 public:
  using Optimizer::control, Optimizer::table;
  explicit ByHand(std::vector<Tensor> parameters, bool takes_control = false)
      : Optimizer("ByHand", std::move(parameters), 1.0, false, {}), takes_control_(takes_control) {}

 protected:
  void update(std::span<const Update> /*updates*/) override {
    if (takes_control_) control();
  }

 private:
  bool takes_control_;
};

}  // namespace

TEST_CASE(
    "a replay is refused of an optimizer that takes its rate by value, of the CPU, of a group that is frozen, and of "
    "a first step",
    "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto parameter_on = [](Device device) {
    return autograd::set_requires_grad(Tensor::zeros({3}, {.device = device}));
  };
  const auto give_gradient = [](const Tensor& parameter) {
    autograd::set_grad(parameter, Tensor::full({3}, 1.0, parameter.options()));
  };
  const auto recorded_refusal_of = [&](optim::Optimizer& optimizer) {
    give_gradient(optimizer.parameters()[0]);
    take_steps(optimizer, 2);
    record_step(optimizer);
    return refusal_of(optimizer);
  };
  const Tensor there = parameter_on(kGpu), other = parameter_on(kGpu);
  ByHand by_hand({there}), by_control({there, other}, true);
  CHECK_THAT(error_of([&] { by_hand.control(); }), ContainsText("ByHand: control() is for update()"));
  CHECK_THAT(error_of([&] { by_hand.table(); }), ContainsText("ByHand: table() is for update()"));
  CHECK_THAT(recorded_refusal_of(by_hand),
             ContainsText("ByHand: a recorded step() cannot be replayed: its kernels do"));
  CHECK(recorded_refusal_of(by_control) == "no error");
  give_gradient(other);
  record_step(by_control);
  CHECK_THAT(refusal_of(by_control), ContainsText("it was the first one of a parameter; take this step by step()"));
  optim::SGD on_cpu({parameter_on(Device{})}, {.lr = 1.0}), freezing({there}, {.lr = 1.0});
  CHECK_THAT(recorded_refusal_of(on_cpu), ContainsText("the CPU records nothing"));
  freezing.add_group({.parameters = {there}, .freeze_step = 3});
  CHECK_THAT(recorded_refusal_of(freezing), ContainsText("is elsewhere now"));
}

TEST_CASE("moves of slow weights and of averages copy a decay that has changed, and nothing else",
          "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({300}, 1.0, {.device = kGpu}));
  const optim::SGD sgd({weight}, {.lr = 0.5});
  optim::Lookahead constant({{"weight", weight}}, sgd, optim::LookaheadOptions::constant(1, 0.5)),
      rising({{"weight", weight}}, sgd, {.every = 1});
  optim::ExponentialMovingAverage ema({{"weight", weight}}, 0.5);
  for (std::int64_t step = 1; step <= 30; ++step) {
    CAPTURE(step);
    const Work of_constant = work_of([&] { constant.after_step(step, 30); }),
               of_rising = work_of([&] { rising.after_step(step, 30); }), of_ema = work_of([&] { ema.update(); });
    if (step == 1) continue;  // tables
    CHECK(of_constant == Work{1, 0, 0});
    CHECK(of_rising == Work{1, 1, kRow});
    const bool rises = step <= 9;  // (1 + t) / (10 + t) comes to 0.5 at t = 8
    CHECK(of_ema == Work{1, rises ? 1 : 0, rises ? kRow : 0});
  }
}
