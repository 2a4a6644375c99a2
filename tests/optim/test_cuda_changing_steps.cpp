// Steps whose numbers are in the device's memory, against those that get them by value.
#include "tandem/autograd/variable.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/step_control.h"
#include "tests/optim/changing_steps.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;
using optim::GradScaler;

namespace {

GradScaler make_scaler() { return GradScaler({.mode = optim::LossScaling::fixed, .init_scale = kLossScale}); }

}  // namespace

// Sums of binary fractions that f32 holds exactly, by a plain loop.
TEST_CASE("rates that a schedule changes are those that SGD steps by on a GPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({5000}, 3.0, {.device = kGpu}));
  optim::SGD sgd({weight}, {.lr = 1.0, .momentum = 0.5, .weight_decay = 0.25});
  autograd::set_grad(weight, Tensor::full({5000}, 2.0, weight.options()));
  double expected = 3.0, buffer = 0.0;
  for (int step = 0; step < 5; ++step) {
    const double lr = 0.5 / (1 << step);
    sgd.set_lr(lr);
    sgd.step();
    buffer = 0.5 * buffer + 2.0 + 0.25 * expected;
    expected -= lr * buffer;
    CHECK(weight.to_vector<double>() == std::vector<double>(5000, expected));
  }
}

TEST_CASE("a state that is loaded counts on a GPU from where it was, also behind a step that was skipped",
          "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : {Rule::adam, Rule::adamw}) {
    const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f16);
    const auto optimizer = make_changing(rule, parameters);
    GradScaler scaler = make_scaler();
    const auto take_steps = [&](optim::Optimizer& of, std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t step = first; step <= last; ++step) take_changing_step(of, scaler, step);
    };
    take_steps(*optimizer, 1, 3);
    const auto save = [&] {
      NamedTensors saved;
      for (const auto& [name, tensor] : optimizer->state_dict()) saved.emplace_back(name, tensor.clone());
      return saved;
    };
    const NamedTensors saved = save();
    take_steps(*optimizer, 6, 6);
    const NamedTensors one_more = save();
    take_steps(*optimizer, 7, 8);
    const auto straight_on = contents(*optimizer);
    take_steps(*optimizer, 9, 9);  // is skipped, and nobody has asked
    optimizer->load_state_dict(saved);
    take_steps(*optimizer, 9, 9);  // would have made it as many steps as the next state has
    optimizer->load_state_dict(one_more);
    take_steps(*optimizer, 7, 8);
    CHECK(contents(*optimizer) == straight_on);

    const auto fresh = make_changing(rule, parameters_on(kGpu, DType::f16));
    fresh->load_state_dict(saved);
    take_steps(*fresh, 6, 8);
    CHECK(contents(*fresh) == straight_on);
  }
}

TEST_CASE("a parameter without a gradient does not count the step on a GPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const std::vector<Tensor> there = parameters_on(kGpu, DType::f32), twin = parameters_on(kGpu, DType::f32);
  optim::Adam both(there, {.lr = 0.1}), alone({twin[1]}, {.lr = 0.1});
  for (std::uint32_t step = 1; step <= 6; ++step) {
    both.zero_grad();
    set_gradient(there[0], step);
    if (step % 2 == 0) {
      set_gradient(there[1], step);
      set_gradient(twin[1], step);
      alone.step();
    }
    both.step();
  }
  CHECK(there[1].to_vector<float>() == twin[1].to_vector<float>());
  CHECK(both.steps() == 6);
}

// On the simulator a race would be found.
TEST_CASE("steps on one stream and then another go by their own numbers", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const Rule rule : {Rule::sgd, Rule::adam}) {
    const std::vector<Tensor> parameters = parameters_on(kGpu, DType::f32);
    const auto optimizer = make_changing(rule, parameters);
    ByValue by_value(rule, parameters_on(kGpu, DType::f32));
    GradScaler scaler = make_scaler();
    for (std::uint32_t step = 1; step <= 8; ++step) {
      if (step % 3 != 0) {
        take_changing_step(*optimizer, scaler, step);
      } else {
        const Stream stream(kGpu);
        Event before, behind;
        before.record(current_stream(kGpu));
        stream.wait(before);
        {
          const StreamScope scope(stream);
          take_changing_step(*optimizer, scaler, step);
          behind.record(stream);
          stream.synchronize();
        }
        current_stream(kGpu).wait(behind);
      }
      by_value.step(step);
      REQUIRE(parameters[0].to_vector<float>() == by_value.parameters[0].to_vector<float>());
    }
  }
}

// On the simulator a race would be found.
TEST_CASE("a stream gets rows of its own", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  optim::StepControl control(1);
  control.set(0, {.lr = 1.0});
  const Tensor first = control.row(0, kGpu);
  const Stream other(kGpu);
  {
    const StreamScope scope(other);
    control.set(0, {.lr = 2.0});
    const Tensor second = control.row(0, kGpu);
    CHECK(second.raw_data() != first.raw_data());
    CHECK(second.to_vector<double>()[0] == 2.0);
  }
  CHECK(first.to_vector<double>()[0] == 1.0);
}
