// Steps that a scaler skips, and what they leave alone: state, factors of gradients, other optimizers.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/layers/linear.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/catch.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::GradScaler;
using optim::LossScaling;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

/// A linear layer with SGD.
struct OneLinear {
  layers::Initializer initializer{3};
  layers::Linear linear{{.in = 3, .out = 2}, initializer};
  optim::SGD sgd;

  explicit OneLinear(DType dtype) : sgd(converted(linear, dtype).parameters(), {.lr = 0.5, .momentum = 0.9}) {}

  /// Adds `factor` times the gradient of a fixed loss.
  void backward(double factor) {
    const DType dtype = linear.parameters()[0].dtype();
    const Tensor x = Tensor::from(std::vector<float>{0.5f, -1.0f, 0.25f, 1.0f, 0.75f, -0.5f}, {2, 3});
    const Tensor loss = autograd::sum(linear(autograd::cast(x, dtype)));
    autograd::backward(loss, Tensor::full({}, factor, loss.options()));
  }

 private:
  static layers::Linear& converted(layers::Linear& layer, DType dtype) {
    layer.to(dtype);
    return layer;
  }
};

}  // namespace

TEST_CASE("a skipped step changes no parameter, master, moment or count") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::vector<Tensor> parameters = make_parameters(dtype);
  optim::Adam adam(parameters, {.lr = 0.1, .weight_decay = 0.1, .amsgrad = true});
  GradScaler scaler(LossScaling::dynamic);
  const auto set_gradients = [&](std::uint32_t step) {
    for (const Tensor& parameter : parameters) set_gradient(parameter, step);
  };
  set_gradients(1);
  CHECK(scaler.step(adam));
  scaler.update();
  const auto before = contents(adam);
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    set_gradients(2);
    autograd::grad(parameters[1]).narrow(0, 36, 1).fill(bad);
    CHECK_FALSE(scaler.step(adam));
    scaler.update();
    adam.zero_grad();
    CHECK(contents(adam) == before);
    CHECK(adam.steps() == 1);
  }
  CHECK(scaler.scale() == 8192.0);
  set_gradients(2);
  CHECK(scaler.step(adam));
  CHECK(contents(adam) != before);
}

/// How a training loop gets rid of gradients, or that it does not: it adds to them, or puts others in their place.
enum class Drop : std::uint8_t { by_model, by_optimizer, not_at_all, replaced };

TEST_CASE("a skipped step leaves nothing behind, however its gradients go") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const double bad = GENERATE(as<double>{}, kInfinity, -kInfinity, std::nan(""));
  const Drop drop = GENERATE(Drop::by_model, Drop::by_optimizer, Drop::not_at_all, Drop::replaced);
  const bool clipped = GENERATE(false, true);
  INFO(name_of(dtype) << ", a gradient of " << bad << ", drop " << static_cast<int>(drop) << ", clip " << clipped);
  OneLinear skipping(dtype), plain(dtype);
  GradScaler scaler({.init_scale = 64.0}), of_plain({.init_scale = 32.0});  // the scale after one skip

  skipping.backward(scaler.scale() * bad);
  scaler.unscale(skipping.sgd);
  if (clipped) optim::clip_grad_norm(skipping.sgd, 0.5);
  CHECK_FALSE(scaler.step(skipping.sgd));
  scaler.update();
  CHECK(skipping.sgd.gradient_factor() == 1.0);
  if (drop == Drop::by_model) skipping.linear.zero_grad();
  if (drop == Drop::by_optimizer) skipping.sgd.zero_grad();
  if (drop == Drop::not_at_all) {
    skipping.backward(scaler.scale());  // added to what is not finite: skipped again, and again without a trace
    CHECK_FALSE(scaler.step(skipping.sgd));
    scaler.update();
    CHECK(skipping.sgd.gradient_factor() == 1.0);
    return;
  }
  if (drop == Drop::replaced) {
    for (const Tensor& weight : skipping.linear.parameters()) autograd::set_grad(weight, zeros_like(weight));
  }

  for (auto [run, its_scaler] : {std::pair(&skipping, &scaler), std::pair(&plain, &of_plain)}) {
    run->backward(its_scaler->scale());
    its_scaler->unscale(run->sgd);
    if (clipped) optim::clip_grad_norm(run->sgd, 0.5);
    CHECK(its_scaler->step(run->sgd));
    its_scaler->update();
  }
  CHECK(contents(skipping.sgd) == contents(plain.sgd));
}

TEST_CASE("a step that a program leaves out by itself leaves no factor behind") {
  const double bad = GENERATE(as<double>{}, kInfinity, std::nan(""));
  OneLinear skipping(DType::f32), plain(DType::f32);
  skipping.backward(bad);
  CHECK_FALSE(std::isfinite(optim::clip_grad_norm(skipping.sgd, 0.5)));
  skipping.linear.zero_grad();  // and no step: the norm said enough
  CHECK(skipping.sgd.gradient_factor() == 1.0);
  for (OneLinear* run : {&skipping, &plain}) {
    run->backward(1.0);
    optim::clip_grad_norm(run->sgd, 0.5);
    run->sgd.step();
  }
  CHECK(contents(skipping.sgd) == contents(plain.sgd));
}

TEST_CASE("a factor lasts as long as a gradient that it was given to, or until a step where there was none yet") {
  OneLinear run(DType::f32);
  run.backward(1.0);
  run.sgd.scale_gradients(0.5);
  autograd::clear_grad(run.linear.parameters()[0]);  // left out of this step; the other one's factor stays
  CHECK(run.sgd.gradient_factor() == 0.5);
  autograd::clear_grad(run.linear.parameters()[1]);
  CHECK(run.sgd.gradient_factor() == 1.0);
  run.sgd.scale_gradients(0.25);  // ahead of backward
  run.backward(1.0);
  CHECK(run.sgd.gradient_factor() == 0.25);
  run.sgd.skip_step();
  CHECK(run.sgd.gradient_factor() == 1.0);
  CHECK(run.sgd.steps() == 0);
}

TEST_CASE("one optimizer's skipped step leaves another's factor alone, and nothing in its own") {
  OneLinear good(DType::f32), bad(DType::f32);
  GradScaler scaler({.init_scale = 64.0});
  good.backward(scaler.scale());
  bad.backward(scaler.scale() * kInfinity);
  scaler.unscale(good.sgd);
  scaler.unscale(bad.sgd);
  optim::clip_grad_norm(bad.sgd, 0.5);
  CHECK_FALSE(scaler.step(bad.sgd));
  CHECK(bad.sgd.gradient_factor() == 1.0);
  CHECK(good.sgd.gradient_factor() == 1.0 / 64.0);
  CHECK(scaler.step(good.sgd));
}

TEST_CASE("micro-batches after a skipped step count as after none") {
  const bool by_model = GENERATE(false, true);
  OneLinear skipping(DType::f16), plain(DType::f16);
  GradScaler scaler({.init_scale = 64.0}), of_plain({.init_scale = 32.0});
  skipping.backward(scaler.scale());
  skipping.backward(std::nan(""));
  scaler.unscale(skipping.sgd);
  optim::clip_grad_norm(skipping.sgd, 0.5);
  CHECK_FALSE(scaler.step(skipping.sgd));
  scaler.update();
  by_model ? skipping.linear.zero_grad() : skipping.sgd.zero_grad();
  for (auto [run, its_scaler] : {std::pair(&skipping, &scaler), std::pair(&plain, &of_plain)}) {
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) run->backward(its_scaler->scale() / 3.0);
    CHECK(its_scaler->step(run->sgd));
  }
  CHECK(contents(skipping.sgd) == contents(plain.sgd));
}
