// Gradient clipping and accumulation.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/linear.h"
#include "tandem/autograd/functions/pointwise.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/gradient_accumulation.h"
#include "tandem/optim/l1_penalty.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/optimizer_support.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

double norm_of(const std::vector<Tensor>& parameters) {
  double sum = 0.0;
  for (const Tensor& parameter : parameters) {
    for (const double value : autograd::grad(parameter).to_vector<double>()) sum += value * value;
  }
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("clip_grad_norm scales all gradients to the norm, or leaves them as they are") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16);
  const std::vector<Tensor> parameters = make_parameters(dtype);
  for (const Tensor& parameter : parameters) set_gradient(parameter, 1);
  const double norm = norm_of(parameters);
  const std::vector<double> before = autograd::grad(parameters[0]).to_vector<double>();
  // Squares and their sum are in double: 172 of them.
  CHECK(std::abs(optim::clip_grad_norm(parameters, 1e3) - norm) <= 172 * 0x1p-53 * norm);
  CHECK(autograd::grad(parameters[0]).to_vector<double>() == before);
  CHECK(std::abs(optim::clip_grad_norm(parameters, 2.0) - norm) <= 172 * 0x1p-53 * norm);
  const double unit = dtype == DType::f64 ? 0x1p-53 : dtype == DType::f32 ? 0x1p-24 : 0x1p-8;
  CHECK(std::abs(norm_of(parameters) - 2.0 * norm / (norm + 1e-6)) <= 2.0 * (4.0 * unit + 172 * 0x1p-53));
}

TEST_CASE("clip_grad_norm passes over parameters without gradients and refuses a bound of 0") {
  const std::vector<Tensor> parameters = make_parameters(DType::f32);
  CHECK(optim::clip_grad_norm(parameters, 1.0) == 0.0);
  CHECK_THROWS_AS(optim::clip_grad_norm(parameters, 0.0), Error);
  CHECK_THROWS_AS(optim::clip_grad_norm(parameters, NAN), Error);
}

TEST_CASE("the gradient of an L1 penalty is that of the sum of absolute values") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16);
  const std::vector<Tensor> parameters = make_parameters(dtype), others = make_parameters(dtype);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    autograd::backward(autograd::scale(autograd::sum(autograd::abs(others[i])), 0.25));
    if (i > 0) autograd::set_grad(parameters[i], Tensor::zeros(parameters[i].shape(), parameters[i].options()));
  }
  optim::add_l1_gradient(parameters, 0.25);
  CHECK_FALSE(autograd::grad(parameters[0]).defined());  // one without a gradient stays so
  for (std::size_t i = 1; i < parameters.size(); ++i)
    CHECK(autograd::grad(parameters[i]).to_vector<double>() == autograd::grad(others[i]).to_vector<double>());
  optim::add_l1_gradient(parameters, 0.5);  // added to what is there
  const auto once = autograd::grad(others[1]).to_vector<double>();
  auto three_times = once;
  for (double& value : three_times) value *= 3.0;
  CHECK(autograd::grad(parameters[1]).to_vector<double>() == three_times);
  optim::add_l1_gradient(parameters, 0.0);
  CHECK(autograd::grad(parameters[1]).to_vector<double>() == three_times);
  for (const double weight : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    CHECK_THROWS_WITH(optim::add_l1_gradient(parameters, weight), ContainsText("must be a finite number"));
}

TEST_CASE("the gradient of an L1 penalty goes to f32 gradients of half parameters, and is 0 at 0") {
  const Tensor w =
      autograd::set_requires_grad(autograd::cast(Tensor::from<float>({-3, 0, 1, -0.5}, {4}), DType::bf16).detach());
  autograd::set_gradient_place(w, Tensor::zeros({4}));
  autograd::backward(autograd::scale(autograd::sum(w), 2.0));
  REQUIRE(autograd::grad(w).dtype() == DType::f32);
  optim::add_l1_gradient({w}, 0.001);  // not a number of bf16
  CHECK(autograd::grad(w).to_vector<float>() == std::vector<float>{2.0f - 0.001f, 2.0f, 2.0f + 0.001f, 2.0f - 0.001f});
}

TEST_CASE("accumulated gradients are those of the whole batch") {
  const Tensor x = make_parameters(DType::f64)[0].detach().contiguous().view({15, 9});
  const Tensor rows = x.narrow(0, 0, 12);
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 1, 2, 3, 3, 2, 1, 0, 1, 2, 0, 1}, {12});
  const auto weight = [] { return autograd::set_requires_grad(Tensor::full({4, 9}, 0.25, {.dtype = DType::f64})); };
  const auto loss_of = [&](const Tensor& w, std::int64_t first, std::int64_t count) {
    const Tensor logits = autograd::linear(rows.narrow(0, first, count), w, Tensor());
    return autograd::softmax_cross_entropy(logits, labels.narrow(0, first, count));
  };
  const Tensor whole = weight(), parts = weight();
  autograd::backward(loss_of(whole, 0, 12));
  optim::GradientAccumulation accumulation(3);
  for (int round = 0; round < 2; ++round) {
    autograd::clear_grad(parts);
    for (std::int64_t i = 0; i < 3; ++i) {
      CHECK(accumulation.is_last() == (i == 2));
      CHECK(accumulation.backward(loss_of(parts, 4 * i, 4)) == (i == 2));
    }
    const std::vector<double> a = autograd::grad(whole).to_vector<double>(),
                              b = autograd::grad(parts).to_vector<double>();
    // Sums of 12 terms below 3 in another order.
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 24 * 0x1p-53 * 3.0);
  }
  CHECK_THROWS_AS(optim::GradientAccumulation(0), Error);
  CHECK_THROWS_AS(accumulation.backward(parts), Error);
}

TEST_CASE("a gradient factor is that of the gradients it was given to, and of no later ones") {
  const Tensor a = autograd::set_requires_grad(Tensor::full({}, 0.0)),
               b = autograd::set_requires_grad(Tensor::full({}, 0.0));
  const auto set = [](const Tensor& parameter) { autograd::set_grad(parameter, Tensor::full({}, 1.0)); };
  optim::SGD sgd({a, b}, {.lr = 1.0});
  set(a);
  set(b);
  sgd.scale_gradients(0.25);
  SECTION("one gradient is dropped and comes anew") {
    autograd::clear_grad(a);
    set(a);
  }
  SECTION("one is dropped by an undefined gradient and comes anew") {
    autograd::set_grad(a, {});
    set(a);
  }
  sgd.step();
  CHECK(a.item() == -1.0);
  CHECK(b.item() == -0.25);
}

TEST_CASE("a gradient that comes after a factor does not have it") {
  const Tensor a = autograd::set_requires_grad(Tensor::full({}, 0.0)),
               b = autograd::set_requires_grad(Tensor::full({}, 0.0));
  optim::SGD sgd({a, b}, {.lr = 1.0});
  autograd::set_grad(a, Tensor::full({}, 1.0));
  sgd.scale_gradients(0.25);
  autograd::set_grad(b, Tensor::full({}, 1.0));
  const bool clipped = GENERATE(false, true);
  if (clipped) CHECK(optim::clip_grad_norm(sgd, 100.0) == Approx(std::sqrt(1.0 + 0.0625)));
  sgd.step();
  CHECK(a.item() == -0.25);
  CHECK(b.item() == -1.0);
}

TEST_CASE("a gradient that has a factor is not added to or replaced before the step") {
  const Tensor a = autograd::set_requires_grad(Tensor::full({}, 0.0));
  optim::SGD sgd({a}, {.lr = 1.0});
  const auto backward = [&] { autograd::backward(autograd::scale(a, 10.0)); };
  backward();
  const bool clipped = GENERATE(true, false);
  optim::clip_grad_norm(sgd, clipped ? 1.0 : 100.0);
  SECTION("added to") { backward(); }
  SECTION("replaced") { autograd::set_grad(a, Tensor::full({}, 20.0)); }
  if (!clipped) {  // a factor of 1 is none
    CHECK(optim::clip_grad_norm(sgd, 100.0) == 20.0);
    sgd.step();
    CHECK(a.item() == -20.0);
    return;
  }
  const std::string message =
      "SGD: the gradient of parameter 0, f32[], was added to or replaced after it was clipped or unscaled: clip and "
      "unscale after the last backward() of a step";
  CHECK(error_of([&] { sgd.step(); }) == message);
  CHECK(error_of([&] { optim::clip_grad_norm(sgd, 1.0); }) == message);
  CHECK(a.item() == 0.0);
  CHECK(sgd.steps() == 0);
  sgd.zero_grad();
  backward();
  sgd.step();
  CHECK(a.item() == -10.0);
}
