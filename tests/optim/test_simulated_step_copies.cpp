// What a step of an optimizer launches and copies, and that it can be recorded.
#include "tandem/autograd/variable.h"
#include "tandem/core/cuda/recording.h"
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
    for (int step = 0; step < 3; ++step) optimizer->step();
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

TEST_CASE("a replay that would be another step is refused", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f32);
  const auto optimizer = make_changing(Rule::adam, parameters);
  const auto refusal = [&] {
    const std::int64_t steps = optimizer->steps();
    const double factor = optimizer->gradient_factor();
    const std::string text = error_of([&] { optimizer->prepare_replay(); });
    CHECK(optimizer->steps() == steps + (text == "no error" ? 1 : 0));
    if (text != "no error") CHECK(optimizer->gradient_factor() == factor);
    return text;
  };
  const auto set_gradients = [&] {
    for (const Tensor& parameter : parameters) set_gradient(parameter, 1);
  };
  const auto take_steps = [&](int count) {
    for (int step = 0; step < count; ++step) optimizer->step();
  };
  CHECK_THAT(refusal(), ContainsText("Adam: the last step() cannot be replayed: there was none"));
  set_gradients();
  take_steps(1);
  CHECK_THAT(refusal(), ContainsText("it was the first one of a parameter; take this step by step()"));
  take_steps(1);
  CHECK(refusal() == "no error");
  const Tensor old = autograd::grad(parameters[1]);
  set_gradient(parameters[1], 2);
  CHECK_THAT(refusal(), ContainsText("a parameter, its gradient or its state is elsewhere now"));
  autograd::clear_grad(parameters[1]);
  CHECK_THAT(refusal(), ContainsText("is elsewhere now"));
  take_steps(1);
  CHECK(refusal() == "no error");  // of the first parameter alone
  set_gradients();
  CHECK_THAT(refusal(), ContainsText("or was not there"));
  optimizer->step_if(optim::FiniteCheck(optim::gradients_of(parameters)));
  CHECK_THAT(refusal(), ContainsText("a check on the device decided"));
  take_steps(1);
  {
    const StreamScope scope{Stream(kGpu)};
    CHECK_THAT(refusal(), ContainsText("step control: the rows on cuda:0 are read on another stream"));
  }
  CHECK(refusal() == "no error");
  NamedTensors saved;
  for (const auto& [name, tensor] : optimizer->state_dict()) saved.emplace_back(name, tensor.clone());
  optimizer->load_state_dict(saved);
  CHECK_THAT(refusal(), ContainsText("or a state was loaded since"));
  optimizer->zero_grad();
  take_steps(1);
  CHECK_THAT(refusal(), ContainsText("it had no gradients"));
}

namespace {

/// Takes its rate by value.
class ByHand final : public optim::Optimizer {
 public:
  using Optimizer::control, Optimizer::table;
  explicit ByHand(const Tensor& parameter) : Optimizer("ByHand", {parameter}, 1.0, false, {}) {}

 protected:
  void update(std::span<const Update> /*updates*/) override {}
};

}  // namespace

TEST_CASE("a replay is refused of an optimizer that takes its rate by value, of the CPU, and of a group that is frozen",
          "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor there = autograd::set_requires_grad(Tensor::zeros({3}, {.device = kGpu})),
               here = autograd::set_requires_grad(Tensor::zeros({3}));
  const auto refusal_of = [](optim::Optimizer& optimizer) {
    const Tensor& parameter = optimizer.parameters()[0];
    autograd::set_grad(parameter, Tensor::full({3}, 1.0, parameter.options()));
    for (int step = 0; step < 2; ++step) optimizer.step();
    return error_of([&] { optimizer.prepare_replay(); });
  };
  ByHand by_hand(there);
  CHECK_THAT(error_of([&] { by_hand.control(); }), ContainsText("ByHand: control() is for update()"));
  CHECK_THAT(error_of([&] { by_hand.table(); }), ContainsText("ByHand: table() is for update()"));
  CHECK_THAT(refusal_of(by_hand), ContainsText("ByHand: the last step() cannot be replayed: its kernels do not go by"));
  optim::SGD on_cpu({here}, {.lr = 1.0}), freezing({there}, {.lr = 1.0});
  CHECK_THAT(refusal_of(on_cpu), ContainsText("the CPU records nothing"));
  freezing.add_group({.parameters = {there}, .freeze_step = 2});
  CHECK_THAT(refusal_of(freezing), ContainsText("is elsewhere now"));
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
