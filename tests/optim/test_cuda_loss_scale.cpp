// Loss scales that change on a GPU, against those that the host changes.
#include "tandem/autograd/variable.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/every_optimizer.h"
#include "tests/optim/skipped_steps.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;
using optim::GradScaler;

TEST_CASE("steps by a scale that changes on a GPU have the bits of steps by its numbers", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const optim::GradScalerOptions options{
      .init_scale = 5.3, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 2};
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      INFO(entry.name << " on " << name_of(dtype));
      const GpuRun by_host(entry, dtype), by_gpu(entry, dtype);
      GradScaler scaler(options);
      double scale = options.init_scale;
      int good_steps = 0;
      for (std::uint32_t step = 1; step <= 2 * kSteps; ++step) {
        by_host.set_gradients(step);
        by_gpu.set_gradients(step);
        const double clipping = step % 3 == 0 ? 0.7 : 1.0;
        const Tensor start = scaler.start_gradient(Tensor::zeros({1}, {.device = kGpu}), 0.25);
        CHECK(start.to_vector<float>() == std::vector<float>{static_cast<float>(0.25 * scale)});
        const bool good = step_by_host(*by_host.optimizer, 1.0 / scale * clipping);
        scaler.unscale(*by_gpu.optimizer);
        by_gpu.optimizer->scale_gradients(clipping);
        if (step % 5 == 0) CHECK(by_gpu.optimizer->gradient_factor() == 1.0 / scale * clipping);
        scaler.step(*by_gpu.optimizer);
        scaler.update();
        if (!good) {
          scale *= options.backoff_factor;
          good_steps = 0;
        } else if (++good_steps == options.growth_interval) {
          scale *= options.growth_factor;
          good_steps = 0;
        }
      }
      CHECK(contents(*by_gpu.optimizer) == contents(*by_host.optimizer));
      CHECK(scaler.scale() == scale);
    }
  }
}

TEST_CASE("gradients that come behind a loss scale was taken out do not have it", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({5}, 1.0, {.device = kGpu}));
  optim::SGD sgd({weight}, {.lr = 1.0});
  GradScaler scaler({.init_scale = kScale});
  const auto give = [&](double value) { autograd::set_grad(weight, Tensor::full({5}, value, weight.options())); };
  give(kScale);
  scaler.unscale(sgd);
  CHECK(sgd.gradient_factor() == 1.0 / kScale);
  CHECK_THROWS_WITH(sgd.remove_loss_scale(Tensor::zeros({3})), ContainsText("a loss scale must be that of"));
  sgd.zero_grad();
  CHECK(sgd.gradient_factor() == 1.0);
  give(0.25);
  sgd.step();
  CHECK(weight.to_vector<float>() == std::vector<float>(5, 0.75f));
}

TEST_CASE("a scaler that is copied, and one that is loaded, go on from the scale on the GPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({5}, 1.0, {.device = kGpu}));
  optim::SGD sgd({weight}, {.lr = 1.0});
  GradScaler scaler({.init_scale = kScale, .growth_interval = 2});
  const auto take_step = [&](GradScaler& by, bool good) {
    autograd::set_grad(weight, Tensor::full({5}, good ? 0.0 : std::nan(""), weight.options()));
    by.step(sgd);
    by.update();
  };
  take_step(scaler, false);
  take_step(scaler, true);
  GradScaler copy = scaler, loaded({.init_scale = 64.0, .growth_interval = 2});
  take_step(loaded, true);  // has its state on the GPU
  loaded.load_state_dict(scaler.state_dict());
  for (GradScaler* const each : {&scaler, &copy, &loaded}) {
    CHECK(each->scale() == kScale / 2.0);
    take_step(*each, true);
    CHECK(each->scale() == kScale);
    CHECK(each->skipped_steps() == (each == &loaded ? 0 : 1));
    take_step(*each, false);
    CHECK(each->scale() == kScale / 2.0);
  }
  copy = loaded;
  CHECK(copy.skipped_steps() == 1);
  CHECK(copy.scale() == kScale / 2.0);
}

TEST_CASE("a dynamic scale on a GPU goes the way that it goes on the CPU", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const optim::GradScalerOptions options{.init_scale = kScale, .growth_interval = 3};
  GradScaler here(options), there(options);
  const auto parameter_on = [](Device device) {
    return std::vector<Tensor>{autograd::set_requires_grad(Tensor::zeros({37}, {.device = device}))};
  };
  optim::SGD on_cpu(parameter_on(Device{}), {.lr = 0.1}), on_gpu(parameter_on(kGpu), {.lr = 0.1});
  for (std::uint32_t step = 1; step <= 2 * kSteps; ++step) {
    for (const auto& [scaler, sgd] : {std::pair{&here, &on_cpu}, std::pair{&there, &on_gpu}}) {
      const double value = kBadSteps.contains(step) ? static_cast<double>(INFINITY) : 1.0;
      autograd::set_grad(sgd->parameters()[0], Tensor::full({37}, value, sgd->parameters()[0].options()));
      scaler->step(*sgd);
      scaler->update();
    }
    if (step % 3 == 0) continue;  // updates that nobody asked between
    CHECK(there.scale() == here.scale());
    CHECK(there.state_dict()[1].second.item() == here.state_dict()[1].second.item());
  }
  CHECK(there.skipped_steps() == here.skipped_steps());
}

TEST_CASE("a scaler of two optimizers on a GPU backs off if one of them has skipped", "[cuda][optimizer]") {
  if (!has_gpu()) return;
  const auto sgd_of = [](double gradient) {
    const Tensor parameter = autograd::set_requires_grad(Tensor::zeros({5}, {.device = kGpu}));
    autograd::set_grad(parameter, Tensor::full({5}, gradient, parameter.options()));
    return std::make_unique<optim::SGD>(std::vector<Tensor>{parameter}, optim::SGDOptions{.lr = 1.0});
  };
  const auto good = sgd_of(kScale), bad = sgd_of(std::nan(""));
  GradScaler scaler({.init_scale = kScale});
  scaler.step(*good);
  scaler.step(*bad);
  scaler.update();
  CHECK(scaler.scale() == kScale / 2.0);
  CHECK(good->parameters()[0].to_vector<float>() == std::vector<float>(5, -1.0f));
  CHECK(bad->parameters()[0].to_vector<float>() == std::vector<float>(5, 0.0f));
  CHECK(bad->state_dict().empty());
}
