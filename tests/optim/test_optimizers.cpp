// Every optimizer against PyTorch's formulas, written out one element at a time in double.
#include "tandem/optim/adam.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/optimizer_support.h"

#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kSteps = 12;

/// Runs the check in f64 and in f32.
template <typename Optimizer, typename Options>
void check(const Options& options, double update_size, const ScalarUpdate& formula) {
  const auto make = [&](const std::vector<Tensor>& parameters) {
    return std::make_unique<Optimizer>(parameters, options);
  };
  check_against_formula(DType::f64, 0x1p-53, update_size, kSteps, make, formula);
  check_against_formula(DType::f32, 0x1p-24, update_size, kSteps, make, formula);
}

ScalarUpdate sgd_formula(const optim::SGDOptions& o) {
  return [o](double p, double gradient, std::vector<double>& state, int step) {
    const double g = gradient + o.weight_decay * p;
    if (o.momentum == 0.0) return p - o.lr * g;
    double& buffer = state[0];
    buffer = step == 1 ? g : o.momentum * buffer + (1.0 - o.dampening) * g;
    return p - o.lr * (o.nesterov ? g + o.momentum * buffer : buffer);
  };
}

template <typename Options>
ScalarUpdate adam_formula(const Options& o, bool decoupled) {
  return [o, decoupled](double p, double gradient, std::vector<double>& state, int step) {
    double g = gradient;
    if (decoupled) {
      p *= 1.0 - o.lr * o.weight_decay;
    } else {
      g += o.weight_decay * p;
    }
    state[0] = o.beta1 * state[0] + (1.0 - o.beta1) * g;
    state[1] = o.beta2 * state[1] + (1.0 - o.beta2) * g * g;
    state[2] = std::max(state[2], state[1]);
    const double second = o.amsgrad ? state[2] : state[1];
    const double denominator = std::sqrt(second) / std::sqrt(1.0 - std::pow(o.beta2, step)) + o.eps;
    return p - o.lr / (1.0 - std::pow(o.beta1, step)) * state[0] / denominator;
  };
}

ScalarUpdate rmsprop_formula(const optim::RMSpropOptions& o) {
  return [o](double p, double gradient, std::vector<double>& state, int) {
    const double g = gradient + o.weight_decay * p;
    state[0] = o.alpha * state[0] + (1.0 - o.alpha) * g * g;
    state[1] = o.alpha * state[1] + (1.0 - o.alpha) * g;
    const double root = std::sqrt(o.centered ? state[0] - state[1] * state[1] : state[0]) + o.eps;
    if (o.momentum == 0.0) return p - o.lr * g / root;
    state[2] = o.momentum * state[2] + g / root;
    return p - o.lr * state[2];
  };
}

}  // namespace

// An update is lr times sums of gradients (|normal| < 6); momentum 0.9 adds up to ten of them.
TEST_CASE("SGD follows its formula") {
  const optim::SGDOptions options =
      GENERATE(optim::SGDOptions{.lr = 0.1}, optim::SGDOptions{.lr = 0.1, .weight_decay = 0.05},
               optim::SGDOptions{.lr = 0.1, .momentum = 0.9},
               optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01},
               optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  check<optim::SGD>(options, 12.0, sgd_formula(options));
}

// Adam's update is at most lr / sqrt(1 - beta2) * (1 - beta1)-ish; its relative error is that of the moments.
TEST_CASE("Adam follows its formula") {
  optim::AdamOptions options;
  options.lr = 0.05;
  options.weight_decay = GENERATE(0.0, 0.1);
  options.amsgrad = GENERATE(false, true);
  check<optim::Adam>(options, 1.0, adam_formula(options, false));
}

TEST_CASE("AdamW follows its formula") {
  optim::AdamWOptions options;
  CHECK(options.weight_decay == 0.01);
  options.lr = 0.05;
  options.weight_decay = 0.1;
  check<optim::AdamW>(options, 1.0, adam_formula(options, true));
}

TEST_CASE("AdamW decays weights unless it is told not to, whichever options are given") {
  const auto moved_by_decay = [](auto&&... options) {
    const std::vector<Tensor> parameters{autograd::set_requires_grad(Tensor::full({4}, 2.0))};
    autograd::set_grad(parameters[0], Tensor::zeros({4}));
    optim::AdamW(parameters, options...).step();
    return 2.0 - parameters[0].to_vector<double>()[0];
  };
  // PyTorch: p -= lr * weight_decay * p; f32 holds 2 to 2^-23.
  CHECK(std::abs(moved_by_decay(optim::AdamWOptions{.lr = 0.1}) - 0.1 * 0.01 * 2.0) < 0x1p-22);
  CHECK(moved_by_decay(optim::AdamWOptions{.lr = 0.1, .weight_decay = 0.0}) == 0.0);

  const std::vector<Tensor> parameters{autograd::set_requires_grad(Tensor::full({4}, 2.0))};
  autograd::set_grad(parameters[0], Tensor::zeros({4}));
  optim::AdamW(parameters, {.lr = 0.1}).step();
  CHECK(std::abs(parameters[0].to_vector<double>()[0] - 1.998) < 0x1p-22);
}

// With alpha = 0.99 the first updates are lr * 10; centered, the variance loses digits where it is small: eps bounds
// that.
TEST_CASE("RMSprop follows its formula") {
  optim::RMSpropOptions options;
  options.lr = 0.01;
  options.momentum = GENERATE(0.0, 0.9);
  options.centered = GENERATE(false, true);
  options.weight_decay = 0.01;
  options.eps = options.centered ? 0.1 : 1e-8;
  check<optim::RMSprop>(options, 5.0, rmsprop_formula(options));
}

TEST_CASE("half-precision parameters are updated in f32 and rounded once") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const optim::SGDOptions options{.lr = 0.1, .momentum = 0.9};
  const auto make = [&](const std::vector<Tensor>& parameters) {
    return std::make_unique<optim::SGD>(parameters, options);
  };
  check_against_formula(dtype, unit, 12.0, 3, make, sgd_formula(options));
}

TEST_CASE("a parameter without a gradient is left alone and its first step comes later") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  optim::Adam adam(parameters, {.lr = 0.1});
  const std::vector<double> before = parameters[0].to_vector<double>();
  set_gradient(parameters[1], 1);
  adam.step();
  CHECK(parameters[0].to_vector<double>() == before);
  CHECK(adam.state_dict().size() == 3);
  adam.zero_grad();
  CHECK_FALSE(autograd::grad(parameters[1]).defined());
  // Adam's first step moves by lr exactly (up to eps), whenever it comes.
  set_gradient(parameters[0], 1);
  adam.step();
  const std::vector<double> after = parameters[0].to_vector<double>();
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(std::abs(std::abs(after[i] - before[i]) - 0.1) < 1e-5);
}

TEST_CASE("a gradient in other strides than its parameter is used all the same") {
  const std::vector<Tensor> a = make_parameters(DType::f32), b = make_parameters(DType::f32);
  for (const auto& parameters : {a, b}) set_gradient(parameters[0], 1);
  autograd::set_grad(b[0], autograd::grad(b[0]).contiguous(Layout::row_major));
  REQUIRE_FALSE(autograd::grad(b[0]).strides() == b[0].strides());
  optim::SGD(a, {.lr = 0.1}).step();
  optim::SGD(b, {.lr = 0.1}).step();
  CHECK(a[0].to_vector<double>() == b[0].to_vector<double>());
}
