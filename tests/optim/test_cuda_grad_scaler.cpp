// A loss scale in a GPU's memory: on several streams, in recorded work, and beside the CPU's.
#include "tandem/autograd/variable.h"
#include "tandem/core/work_graph.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <limits>
#include <memory>

using namespace tandem;
using namespace tandem::test;
using optim::GradScaler;
using optim::GradScalerOptions;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

/// SGD of five zeros, which have this gradient.
std::unique_ptr<optim::SGD> sgd_on(Device device, double gradient) {
  const Tensor weight = autograd::set_requires_grad(Tensor::zeros({5}, {.device = device}));
  autograd::set_grad(weight, Tensor::full({5}, gradient, weight.options()));
  return std::make_unique<optim::SGD>(std::vector<Tensor>{weight}, optim::SGDOptions{.lr = 1.0});
}

std::vector<float> weights_of(const optim::Optimizer& optimizer) {
  return optimizer.parameters()[0].to_vector<float>();
}

}  // namespace

// On the simulator a race would be found.
TEST_CASE("a loss scale is read and changed in order, on whatever streams", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto sgd = sgd_on(kGpu, 8.0);
  GradScaler scaler({.init_scale = 8.0, .growth_interval = 1});
  const Tensor loss = Tensor::zeros({3}, {.device = kGpu});
  const Stream side(kGpu), reader(kGpu);
  Event made;
  made.record(current_stream(kGpu));
  for (const Stream& stream : {side, reader}) stream.wait(made);
  double expected = 8.0;
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    {
      const StreamScope scope(side);
      scaler.step(*sgd);
    }
    scaler.update();  // behind the step there
    expected *= 2.0;
    const StreamScope scope(reader);
    const Tensor start = scaler.start_gradient(loss);  // behind the update
    CHECK(start.to_vector<float>() == std::vector<float>(3, static_cast<float>(expected)));
    if (step == 2) {
      scaler.start_gradient(loss);
      scaler.load_state_dict(GradScaler({.init_scale = 4.0}).state_dict());
      expected = 4.0;
    }
  }
  CHECK(scaler.scale() == expected);
  side.synchronize();
  CHECK(weights_of(*sgd) == std::vector<float>(5, -1.0f - 0.5f - 0.25f - 2.0f));
}

TEST_CASE("the memory of a loss scale outlives what reads it on another stream", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto sgd = sgd_on(kGpu, 8.0);
  auto scaler = std::make_unique<GradScaler>(GradScalerOptions{.init_scale = 8.0, .growth_interval = 1});
  scaler->step(*sgd);
  scaler->update();
  const Tensor loss = Tensor::zeros({3}, {.device = kGpu});
  Event made;
  made.record(current_stream(kGpu));
  const Stream reader(kGpu);
  reader.wait(made);
  Tensor start;
  {
    const StreamScope scope(reader);
    start = scaler->start_gradient(loss);
  }
  scaler.reset();
  std::vector<Tensor> others;  // of its size, one of them in its place if that was free
  for (int i = 0; i < 8; ++i) others.push_back(Tensor::full({32}, 1.0, {.dtype = DType::u8, .device = kGpu}));
  reader.synchronize();
  CHECK(start.to_vector<float>() == std::vector<float>(3, 16.0f));
}

TEST_CASE("a recorded start_gradient() reads the scale of each launch, whoever has changed it", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto sgd = sgd_on(kGpu, 1.0), other = sgd_on(kGpu, 1.0), bad_on_cpu = sgd_on(Device{}, kInfinity);
  std::vector<std::unique_ptr<optim::SGD>> many;
  for (int i = 0; i < 9; ++i) many.push_back(sgd_on(kGpu, 1.0));
  other->zero_grad();
  GradScaler scaler({.init_scale = 8.0, .growth_interval = 1});
  const Tensor loss = Tensor::zeros({3}, {.device = kGpu}), start = Tensor::zeros({3}, {.device = kGpu});
  const auto work = [&] { start.copy_from(scaler.start_gradient(loss)); };
  work();
  CHECK_THAT(error_of([&] { const WorkGraph graph(kGpu, work); }), ContainsText("before it is recorded"));
  const auto take_step = [&](std::vector<optim::Optimizer*> optimizers) {
    for (optim::Optimizer* const each : optimizers) scaler.step(*each);
    scaler.update();
  };
  take_step({sgd.get()});
  const WorkGraph graph(kGpu, work);
  const auto launched = [&] {
    graph.launch();
    return start.to_vector<float>();
  };
  const auto all = [](double value) { return std::vector<float>(3, static_cast<float>(value)); };
  CHECK(launched() == all(16.0));
  take_step({sgd.get(), other.get()});  // which has no gradients
  CHECK(launched() == all(32.0));
  take_step({other.get()});
  CHECK(launched() == all(64.0));
  take_step({sgd.get(), bad_on_cpu.get()});
  CHECK(launched() == all(32.0));
  CHECK(scaler.skipped_steps() == 1);
  std::vector<optim::Optimizer*> all_of_many;
  for (const auto& each : many) all_of_many.push_back(each.get());
  take_step(all_of_many);
  CHECK(launched() == all(64.0));
  scaler = GradScaler({.init_scale = 5.0, .growth_interval = 1});
  CHECK(launched() == all(5.0));
  take_step({sgd.get()});
  CHECK(launched() == all(10.0));
  CHECK(scaler.scale() == 10.0);
}

TEST_CASE("gradients that were unscaled keep the scale of then, though it changes before their step",
          "[cuda][optimizer]") {
  for (const Device device : cpu_and_gpu()) {
    for (const bool loads : {false, true}) {
      CAPTURE(name_of(device), loads);
      const auto first = sgd_on(device, 8.0), second = sgd_on(device, 8.0);
      GradScaler scaler({.init_scale = 8.0, .growth_interval = 1});
      scaler.unscale(*first);
      scaler.unscale(*second);
      scaler.step(*first);
      if (loads) {
        scaler.load_state_dict(GradScaler({.init_scale = 2.0}).state_dict());
      } else {
        scaler.update();
      }
      CHECK(second->gradient_factor() == 1.0 / 8.0);
      CHECK_THAT(error_of([&] { scaler.unscale(*second); }),
                 ContainsText("a loss scale was taken out of these gradients already"));
      second->step();
      CHECK(weights_of(*first) == std::vector<float>(5, -1.0f));
      CHECK(weights_of(*second) == std::vector<float>(5, -1.0f));
      CHECK(scaler.scale() == (loads ? 2.0 : 16.0));
    }
  }
}

TEST_CASE("gradients that a loss scale of 1 was taken out of are not added to, on any device", "[cuda][optimizer]") {
  for (const Device device : cpu_and_gpu()) {
    CAPTURE(name_of(device));
    const auto sgd = sgd_on(device, 8.0);
    GradScaler scaler({.mode = optim::LossScaling::fixed, .init_scale = 1.0});
    scaler.unscale(*sgd);
    const Tensor& weight = sgd->parameters()[0];
    autograd::set_grad(weight, Tensor::full({5}, 1.0, weight.options()));
    CHECK_THAT(error_of([&] { scaler.step(*sgd); }), ContainsText("was added to or replaced"));
  }
}
