// Loss scaling: when the scale changes, what it does to gradients, and in which order calls are allowed.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/gradient_accumulation.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::GradScaler;
using optim::GradScalerOptions;
using optim::LossScaling;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

/// One step whose only gradient is `value`; true if it was taken.
bool step_with(GradScaler& scaler, optim::Optimizer& optimizer, double value) {
  for (const Tensor& parameter : optimizer.parameters()) {
    autograd::set_grad(parameter, Tensor::full(parameter.shape(), value, parameter.options()));
  }
  const bool taken = scaler.step(optimizer);
  scaler.update();
  optimizer.zero_grad();
  return taken;
}

std::vector<Tensor> one_parameter(DType dtype = DType::f32) {
  return {autograd::set_requires_grad(Tensor::full({3}, 1.0, {.dtype = dtype}))};
}

}  // namespace

TEST_CASE("the scale starts at 2^16, doubles after 2000 good steps in a row and halves where one overflows") {
  GradScaler scaler(LossScaling::dynamic);
  optim::SGD sgd(one_parameter(), {.lr = 0.0});
  CHECK(scaler.scale() == 65536.0);
  for (int i = 0; i < 1999; ++i) step_with(scaler, sgd, 1.0);
  CHECK(scaler.scale() == 65536.0);
  step_with(scaler, sgd, 1.0);
  CHECK(scaler.scale() == 131072.0);
  for (int i = 0; i < 1999; ++i) step_with(scaler, sgd, 1.0);
  CHECK_FALSE(step_with(scaler, sgd, kInfinity));  // the row of good steps ends
  CHECK(scaler.scale() == 65536.0);
  CHECK_FALSE(step_with(scaler, sgd, std::nan("")));
  CHECK(scaler.scale() == 32768.0);
  CHECK(scaler.skipped_steps() == 2);
  for (int i = 0; i < 1999; ++i) step_with(scaler, sgd, 1.0);
  CHECK(scaler.scale() == 32768.0);
  CHECK(step_with(scaler, sgd, 1.0));
  CHECK(scaler.scale() == 65536.0);
}

TEST_CASE("a scaler that was given nothing leaves f32 training as it is") {
  GradScaler plain, braces({}), twice{{}};
  for (GradScaler* const scaler : {&plain, &braces, &twice}) {
    CHECK(scaler->scale() == 1.0);
    CHECK(scaler->state_dict().empty());
    const std::vector<Tensor> with = one_parameter(), without = one_parameter();
    optim::SGD scaled(with, {.lr = 0.1}), bare(without, {.lr = 0.1});
    for (const Tensor& parameter : {with[0], without[0]}) autograd::set_grad(parameter, Tensor::full({3}, 0.3));
    scaler->unscale(scaled);
    CHECK(scaler->step(scaled));
    scaler->update();
    bare.step();
    CHECK(with[0].to_vector<float>() == without[0].to_vector<float>());
    CHECK(scaler->skipped_steps() == 0);
  }
  CHECK(GradScaler(LossScaling::dynamic).scale() == 65536.0);
  CHECK(GradScaler(GradScalerOptions{.init_scale = 8.0}).scale() == 8.0);  // options ask for scaling
}

TEST_CASE("factors and interval can be chosen, and the scale stays a number that f32 holds") {
  optim::SGD sgd(one_parameter(), {.lr = 0.0});
  GradScaler scaler({.init_scale = 8.0, .growth_factor = 3.0, .backoff_factor = 0.25, .growth_interval = 2});
  step_with(scaler, sgd, 1.0);
  CHECK(scaler.scale() == 8.0);
  step_with(scaler, sgd, 1.0);
  CHECK(scaler.scale() == 24.0);
  step_with(scaler, sgd, kInfinity);
  CHECK(scaler.scale() == 6.0);
  GradScaler large({.init_scale = 0x1p125, .growth_interval = 1}), small({.init_scale = 0x1p-125});
  for (int i = 0; i < 3; ++i) {
    step_with(large, sgd, 1.0);
    step_with(small, sgd, kInfinity);
  }
  CHECK(large.scale() == 0x1p126);
  CHECK(small.scale() == 0x1p-126);
}

TEST_CASE("a fixed scale skips but does not change; without scaling every step is taken") {
  optim::SGD sgd(one_parameter(), {.lr = 0.0});
  GradScaler fixed({.mode = LossScaling::fixed, .init_scale = 128.0, .growth_interval = 1});
  CHECK(step_with(fixed, sgd, 1.0));
  CHECK_FALSE(step_with(fixed, sgd, kInfinity));
  CHECK(fixed.scale() == 128.0);
  CHECK(fixed.skipped_steps() == 1);
  GradScaler none({.mode = LossScaling::none});
  CHECK(none.scale() == 1.0);
  CHECK(step_with(none, sgd, kInfinity));
  CHECK(none.skipped_steps() == 0);
}

TEST_CASE("the scale is taken out of gradients once: a step is the one that unscaled gradients give") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const bool explicitly = GENERATE(false, true);
  const std::vector<Tensor> scaled = make_parameters(dtype), plain = make_parameters(dtype);
  optim::Adam with(scaled, {.lr = 0.1}), without(plain, {.lr = 0.1});
  GradScaler scaler({.init_scale = 1024.0});
  for (std::uint32_t step = 1; step <= 4; ++step) {
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      set_gradient(scaled[i], step);
      set_gradient(plain[i], step);
      // Powers of two: exact, as long as nothing overflows.
      const Tensor larger = empty_like(scaled[i]);
      larger.copy_from(autograd::scale(autograd::grad(scaled[i]), 1024.0));
      autograd::set_grad(scaled[i], larger);
    }
    if (explicitly) scaler.unscale(with);
    CHECK(scaler.step(with));
    scaler.update();
    without.step();
    CHECK(contents(with) == contents(without));
  }
}

TEST_CASE("gradients are clipped by their unscaled norm, without being touched") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::vector<Tensor> parameters{autograd::set_requires_grad(Tensor::zeros({2}, {.dtype = dtype}))};
  optim::SGD sgd(parameters, {.lr = 1.0});
  GradScaler scaler({.init_scale = 256.0});
  const Tensor gradient = empty_like(parameters[0]);  // (3, 4) times the scale: a norm of 5
  gradient.narrow(0, 0, 1).fill(3.0 * 256.0);
  gradient.narrow(0, 1, 1).fill(4.0 * 256.0);
  autograd::set_grad(parameters[0], gradient);
  scaler.unscale(sgd);
  CHECK(optim::clip_grad_norm(sgd, 100.0) == 5.0);
  CHECK(sgd.gradient_factor() == 1.0 / 256.0);
  CHECK(optim::clip_grad_norm(sgd, 0.5) == 5.0);
  CHECK(gradient.to_vector<double>() == std::vector<double>{768.0, 1024.0});
  CHECK(scaler.step(sgd));
  // 0.5 / (5 + 1e-6), and a few roundings; the parameter itself is rounded to its dtype.
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
  const std::vector<double> moved = parameters[0].to_vector<double>();
  CHECK(std::abs(moved[0] + 0.3) <= 4 * unit * 0.3 + 1e-6);
  CHECK(std::abs(moved[1] + 0.4) <= 4 * unit * 0.4 + 1e-6);
  CHECK(sgd.gradient_factor() == 1.0);  // for one step only
  sgd.scale_gradients(0.5);
  sgd.zero_grad();
  CHECK(sgd.gradient_factor() == 1.0);
}

TEST_CASE("micro-batches are scaled alike, and added up in f32") {
  const std::vector<Tensor> parameters = one_parameter(DType::f16);
  optim::SGD sgd(parameters, {.lr = 1.0});
  GradScaler scaler({.init_scale = 4096.0});
  optim::GradientAccumulation accumulation(8);
  for (int i = 0; i < 8; ++i) {
    // The gradient of every micro-batch is 1 + i / 1024 of its share: 11 digits, of which a sum in f16 loses some.
    const Tensor loss = autograd::sum(autograd::scale(parameters[0], 1.0 + i / 1024.0));
    CHECK(accumulation.backward(loss, scaler.scale()) == (i == 7));
  }
  CHECK(autograd::grad(parameters[0]).dtype() == DType::f32);
  CHECK(scaler.step(sgd));
  const double mean = 1.0 + 3.5 / 1024.0;
  CHECK(sgd.master(0).to_vector<double>() ==
        std::vector<double>(3, static_cast<double>(1.0f - static_cast<float>(mean))));
}

TEST_CASE("calls out of order are refused, as by PyTorch") {
  const std::vector<Tensor> parameters = one_parameter();
  optim::SGD sgd(parameters, {.lr = 0.0}), other(one_parameter(), {.lr = 0.0});
  GradScaler scaler(LossScaling::dynamic);
  CHECK_THAT(error_of([&] { scaler.update(); }), ContainsText("update() without a step()"));
  scaler.unscale(sgd);
  CHECK_THAT(error_of([&] { scaler.unscale(sgd); }), ContainsText("unscale() was called twice"));
  CHECK(sgd.gradient_factor() == 1.0 / 65536.0);
  scaler.unscale(other);  // each optimizer once
  scaler.step(sgd);
  CHECK_THAT(error_of([&] { scaler.unscale(sgd); }), ContainsText("unscale() was called after step()"));
  CHECK_THAT(error_of([&] { scaler.step(sgd); }), ContainsText("step() was called twice"));
  scaler.step(other);
  scaler.update();
  scaler.unscale(sgd);
}

TEST_CASE("one optimizer's overflow lets the others step, but the scale back off") {
  const std::vector<Tensor> good = one_parameter(), bad = one_parameter();
  optim::SGD first(good, {.lr = 1.0}), second(bad, {.lr = 1.0});
  GradScaler scaler({.init_scale = 2.0});
  autograd::set_grad(good[0], Tensor::full({3}, 2.0));
  autograd::set_grad(bad[0], Tensor::full({3}, kInfinity));
  CHECK(scaler.step(first));
  CHECK_FALSE(scaler.step(second));
  scaler.update();
  CHECK(scaler.scale() == 1.0);
  CHECK(good[0].to_vector<double>() == std::vector<double>(3, 0.0));
  CHECK(bad[0].to_vector<double>() == std::vector<double>(3, 1.0));
}

TEST_CASE("a scaler resumed from its state goes on as if it had not been interrupted") {
  optim::SGD sgd(one_parameter(), {.lr = 0.0});
  const GradScalerOptions options{.growth_interval = 5};
  GradScaler whole(options), first(options), second(options);
  for (int i = 0; i < 3; ++i) step_with(whole, sgd, 1.0);
  step_with(first, sgd, kInfinity);
  step_with(whole, sgd, kInfinity);
  for (int i = 0; i < 3; ++i) {
    step_with(whole, sgd, 1.0);
    step_with(first, sgd, 1.0);
  }
  second.load_state_dict(first.state_dict());
  CHECK(second.scale() == 32768.0);
  for (int i = 0; i < 2; ++i) {
    step_with(whole, sgd, 1.0);
    step_with(second, sgd, 1.0);
    CHECK(second.scale() == whole.scale());
  }
  CHECK(second.scale() == 65536.0);
}

TEST_CASE("states and options that make no sense are refused") {
  const auto refused = [](const GradScalerOptions& options) { return error_of([&] { GradScaler scaler(options); }); };
  CHECK_THAT(refused({.init_scale = 0.0}), ContainsText("above 0 that f32 can hold, got 0"));
  CHECK_THAT(refused({.init_scale = std::nan("")}), ContainsText("above 0 that f32 can hold"));
  CHECK_THAT(refused({.mode = LossScaling::fixed, .init_scale = kInfinity}), ContainsText("above 0 that f32 can hold"));
  CHECK_THAT(refused({.growth_factor = 1.0}), ContainsText("growth factor must be above 1, got 1"));
  CHECK_THAT(refused({.backoff_factor = 1.0}), ContainsText("backoff factor must lie between 0 and 1"));
  CHECK_THAT(refused({.growth_interval = 0}), ContainsText("growth interval must be at least 1 step"));

  GradScaler scaler({.growth_interval = 10});
  const auto load = [&](GradScaler& into, double scale, std::int64_t tracker) {
    return error_of([&] {
      into.load_state_dict({{"scale", Tensor::full({}, scale, {.dtype = DType::f64})},
                            {"growth_tracker", Tensor::from(std::vector<std::int64_t>{tracker}, {})}});
    });
  };
  CHECK_THAT(load(scaler, -1.0, 0), ContainsText("the state has a scale of -1"));
  CHECK_THAT(load(scaler, 4.0, 10), ContainsText("counts 10 good steps, but the scale grows after 10"));
  CHECK_THAT(error_of([&] { scaler.load_state_dict({}); }), ContainsText("has 2 entries"));
  CHECK_THAT(error_of([&] { scaler.load_state_dict({{"a", Tensor()}, {"b", Tensor()}}); }),
             ContainsText("needs 'scale', one f64"));
  CHECK(scaler.scale() == 65536.0);
  GradScaler fixed({.mode = LossScaling::fixed, .init_scale = 8.0}), none({.mode = LossScaling::none});
  CHECK_THAT(load(fixed, 4.0, 0), ContainsText("this run a fixed one of 8"));
  CHECK_THAT(load(none, 4.0, 0), ContainsText("a run without one"));
  CHECK(none.state_dict().empty());
}
