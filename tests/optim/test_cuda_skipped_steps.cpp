// Steps that a GPU skips by itself, against those that the host skips because it has waited for the answer.
#include "tandem/autograd/variable.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/every_optimizer.h"
#include "tests/optim/skipped_steps.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>
#include <span>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;
using optim::FiniteCheck;
using optim::GradScaler;

TEST_CASE("every optimizer clips on the GPU as where the host knows the norm, bit for bit", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    for (const double bound : {0.01, 1e4}) {  // all steps are clipped, none is
      for (const bool scaled : {true, false}) {
        INFO(entry.name << " to " << bound << (scaled ? ", scaled" : ""));
        const GpuRun by_host(entry, DType::f32), by_gpu(entry, DType::f32);
        GradScaler host_scaler(
            {.mode = scaled ? optim::LossScaling::fixed : optim::LossScaling::none, .init_scale = kScale});
        GradScaler gpu_scaler = host_scaler;
        for (std::uint32_t step = 1; step <= kSteps; ++step) {
          for (const GpuRun* run : {&by_host, &by_gpu}) run->set_gradients(scaled ? step : 2);
          host_scaler.unscale(*by_host.optimizer);
          const double norm = optim::clip_grad_norm(*by_host.optimizer, bound);
          if (std::isfinite(norm)) CHECK((norm > bound) == (bound < 1.0));
          gpu_scaler.unscale(*by_gpu.optimizer);
          by_gpu.optimizer->clip_gradients(bound);
          if (step == 3) CHECK(by_gpu.optimizer->gradient_factor() == by_host.optimizer->gradient_factor());
          if (step == 3)
            CHECK_THROWS_AS(by_gpu.optimizer->remove_loss_scale(kernels::make_loss_scale(kGpu, {})), Error);
          for (auto* const pair : {&by_host, &by_gpu}) {
            GradScaler& scaler = pair == &by_host ? host_scaler : gpu_scaler;
            scaler.step(*pair->optimizer);
            scaler.update();
          }
        }
        CHECK(contents(*by_gpu.optimizer) == contents(*by_host.optimizer));
        CHECK_THROWS_AS(by_gpu.optimizer->clip_gradients(0.0), Error);
      }
    }
  }
}

TEST_CASE("every optimizer skips on the GPU what the host would have skipped, bit for bit", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      INFO(entry.name << " on " << name_of(dtype));
      const GpuRun by_host(entry, dtype), by_gpu(entry, dtype);
      GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = kScale});
      for (std::uint32_t step = 1; step <= kSteps; ++step) {
        by_host.set_gradients(step);
        by_gpu.set_gradients(step);
        const bool good = step_by_host(*by_host.optimizer, 1.0 / kScale);
        const FiniteCheck taken = scaler.step(*by_gpu.optimizer);
        scaler.update();
        CHECK_FALSE(taken.is_known());  // which the host would have to wait for
        if (step % 2 == 0) continue;    // nobody has asked when the next step comes
        CHECK(taken.passed() == good);
        CHECK(taken.passed() != kBadSteps.contains(step));
        CHECK(contents(*by_gpu.optimizer) == contents(*by_host.optimizer));
      }
      CHECK(by_gpu.optimizer->steps() == kSteps - static_cast<std::int64_t>(kBadSteps.size()));
      CHECK(contents(*by_gpu.optimizer) == contents(*by_host.optimizer));
      CHECK(scaler.skipped_steps() == static_cast<std::int64_t>(kBadSteps.size()));
    }
  }
}

TEST_CASE("slow weights on a GPU stay where a step was skipped, and count as the host's do", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const optim::OptimizerEntry& sgd = optim::optimizers().front();
  for (const DType dtype : {DType::f32, DType::f16}) {
    CAPTURE(name_of(dtype));
    const GpuRun by_host(sgd, dtype), by_gpu(sgd, dtype);
    const auto slow_weights_of = [](const GpuRun& run) {
      NamedTensors named;
      for (const Tensor& parameter : run.optimizer->parameters())
        named.emplace_back(std::to_string(named.size()), parameter);
      return optim::Lookahead(named, *run.optimizer, optim::LookaheadOptions::constant(2, 0.5));
    };
    optim::Lookahead host_slow = slow_weights_of(by_host), gpu_slow = slow_weights_of(by_gpu);
    GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = kScale});
    for (std::uint32_t step = 1; step <= kSteps; ++step) {
      by_host.set_gradients(step);
      by_gpu.set_gradients(step);
      if (step_by_host(*by_host.optimizer, 1.0 / kScale)) host_slow.after_step(step, kSteps);
      gpu_slow.after_step(step, kSteps, scaler.step(*by_gpu.optimizer));
      scaler.update();
      if (step % 2 == 0) CHECK(gpu_slow.steps_taken() == host_slow.steps_taken());
    }
    CHECK(gpu_slow.steps_taken() == kSteps - static_cast<std::int64_t>(kBadSteps.size()));
    CHECK(contents(*by_gpu.optimizer) == contents(*by_host.optimizer));
    for (std::size_t i = 0; i < gpu_slow.slow_weights().size(); ++i) {
      CHECK(gpu_slow.slow_weights()[i].second.to_vector<float>() ==
            host_slow.slow_weights()[i].second.to_vector<float>());
    }
  }
}

TEST_CASE("a recorded step keeps the table of the gradients that it looks at", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({5}, 1.0, {.device = kGpu}));
  const Tensor gradient = Tensor::full({5}, 4.0, {.device = kGpu}), other = gradient.clone();
  optim::SGD sgd({weight}, {.lr = 0.25});
  GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 4.0});
  const auto step = [&] {
    scaler.step(sgd);
    scaler.update();
  };
  autograd::set_grad(weight, gradient);
  for (int i = 0; i < 2; ++i) step();
  sgd.prepare_recording();
  const WorkGraph graph(kGpu, step);
  graph.launch();
  autograd::set_grad(weight, other);
  step();
  autograd::set_grad(weight, gradient);
  sgd.prepare_replay();
  graph.launch();
  CHECK(sgd.steps() == 5);
  CHECK(weight.to_vector<float>() == std::vector<float>(5, -0.25f));
  CHECK(scaler.launched_step().passed());
}

TEST_CASE("slow weights whose first move a GPU has skipped are not given back at the end", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const bool is_skipped : {false, true}) {
    CAPTURE(is_skipped);
    const Tensor weight = autograd::set_requires_grad(Tensor::full({5}, 1.0, {.device = kGpu}));
    optim::SGD sgd({weight}, {.lr = 0.25});
    optim::Lookahead lookahead({{"weight", weight}}, sgd, optim::LookaheadOptions::constant(2, 0.5));
    GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 4.0});
    for (std::int64_t step = 1; step <= 2; ++step) {
      const double gradient = is_skipped && step == 2 ? INFINITY : 4.0;
      autograd::set_grad(weight, Tensor::full({5}, gradient, weight.options()));
      lookahead.after_step(step, 2, scaler.step(sgd));
      scaler.update();
    }
    lookahead.finish();
    // Each step takes 0.25, and the move goes half of the way back to 1.
    CHECK(weight.to_vector<float>() == std::vector<float>(5, 0.75f));
    CHECK(lookahead.slow_weights().front().second.to_vector<float>() ==
          std::vector<float>(5, is_skipped ? 1.0f : 0.75f));
  }
}

namespace {

/// An optimizer of a program's own, which knows nothing of skip().
class Counting final : public optim::Optimizer {
 public:
  explicit Counting(const Tensor& parameter) : Optimizer("Counting", {parameter}, 1.0, false, {}) {}
  int updates = 0;

 protected:
  void update(std::span<const Update> /*updates*/) override { ++updates; }
};

}  // namespace

TEST_CASE("an optimizer that does not look at the answer itself is called for steps that are taken only",
          "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor parameter = autograd::set_requires_grad(Tensor::zeros({3}, {.device = kGpu}));
  Counting optimizer(parameter);
  GradScaler scaler({.init_scale = kScale});
  for (const double gradient : {1.0, static_cast<double>(INFINITY), 2.0}) {
    autograd::set_grad(parameter, Tensor::full({3}, gradient, parameter.options()));
    scaler.step(optimizer);
    scaler.update();
  }
  CHECK(optimizer.updates == 2);
  CHECK(optimizer.steps() == 2);
}

namespace {

/// SGD with something of its own.
class CountingSgd final : public optim::SGD {
 public:
  explicit CountingSgd(const Tensor& parameter) : SGD({parameter}, {.lr = 1.0}) {}
  int updates = 0;

 protected:
  void update(std::span<const Update> updates_due) override {
    ++updates;
    SGD::update(updates_due);
  }
};

}  // namespace

TEST_CASE("what is derived from SGD is called for steps that are taken only, too", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor parameter = autograd::set_requires_grad(Tensor::zeros({3}, {.device = kGpu}));
  CountingSgd optimizer(parameter);
  GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 1.0});
  for (const double gradient : {1.0, static_cast<double>(INFINITY), 2.0}) {
    autograd::set_grad(parameter, Tensor::full({3}, gradient, parameter.options()));
    scaler.step(optimizer);
    scaler.update();
  }
  CHECK(optimizer.updates == 2);
  CHECK(parameter.to_vector<float>() == std::vector<float>(3, -3.0f));
}

// On the simulator a race would be found.
TEST_CASE("a step on another stream than its check waits for that", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor parameter = autograd::set_requires_grad(Tensor::zeros({5000}, {.device = kGpu}));
  optim::SGD sgd({parameter}, {.lr = 1.0});
  GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 1.0});
  autograd::set_grad(parameter, Tensor::full({5000}, static_cast<double>(INFINITY), parameter.options()));
  Event gradients_done;
  gradients_done.record(current_stream(kGpu));
  scaler.unscale(sgd);
  const Stream other(kGpu);
  other.wait(gradients_done);
  {
    const StreamScope scope(other);
    CHECK_FALSE(scaler.step(sgd).passed());
  }
  scaler.update();
  CHECK(parameter.to_vector<float>() == std::vector<float>(5000, 0.0f));
  CHECK(sgd.steps() == 0);
}

TEST_CASE("a group freezes at its step, also where the steps before it were skipped on a GPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::zeros({3}, {.device = kGpu}));
  optim::SGD sgd({weight}, {.lr = 1.0});
  sgd.add_group({.parameters = {weight}, .freeze_step = 2});
  GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 1.0});
  std::vector<bool> trains;
  for (const double gradient : {1.0, static_cast<double>(INFINITY), 1.0}) {
    autograd::set_grad(weight, Tensor::full({3}, gradient, weight.options()));
    scaler.step(sgd);
    scaler.update();
    trains.push_back(autograd::requires_grad(weight));
  }
  CHECK(trains == std::vector<bool>{true, true, false});  // steps() counts: two were taken
  CHECK(weight.to_vector<float>() == std::vector<float>(3, -2.0f));
}
