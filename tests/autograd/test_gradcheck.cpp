// gradcheck finds wrong gradients of every kind.
#include "tandem/autograd/gradcheck.h"

#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

Tensor leaf(const std::vector<double>& values) {
  return set_requires_grad(Tensor::from(values, {static_cast<std::int64_t>(values.size())}));
}

/// x^2 with a gradient that is `factor` times what it should be at element 1.
Tensor square_with_error(const Tensor& x, double factor) {
  std::vector<double> values = x.to_vector<double>();
  for (double& value : values) value *= value;
  return record("square", {x}, Tensor::from(values, x.shape()), [=](const BackwardContext& context) {
    std::vector<double> in = x.to_vector<double>(), grad = context.grad_output().to_vector<double>();
    for (std::size_t i = 0; i < in.size(); ++i) grad[i] *= 2.0 * in[i] * (i == 1 ? factor : 1.0);
    return std::vector<Tensor>{Tensor::from(grad, x.shape())};
  });
}

}  // namespace

TEST_CASE("gradcheck accepts right gradients and names a wrong element") {
  const auto report = [](double factor) {
    return gradcheck([=](const std::vector<Tensor>& in) { return square_with_error(in[0], factor); },
                     {leaf({1.0, 2.0, -3.0})});
  };
  CHECK(report(1.0));
  CHECK(report(1.0).worst_error < 1e-8);
  CHECK_FALSE(report(1.01));
  CHECK_THAT(report(1.01).message, ContainsText("input 0 f64[3], element 1"));
  CHECK_FALSE(report(std::nan("")));
}

TEST_CASE("gradcheck takes several inputs and outputs, and strided inputs") {
  const Tensor a = set_requires_grad(leaf({1.0, 2.0, 3.0, 4.0}).detach().narrow(0, 0, 2, 2));
  const auto both = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{mul(in[0], in[1]), add(in[0], in[2])};
  };
  CHECK(gradcheck(both, {a, leaf({0.5, -0.5}), Tensor::from<double>({7.0, 8.0}, {2})}).message == "");
}

TEST_CASE("gradcheck notices a missing gradient") {
  const auto forgets = [](const std::vector<Tensor>& in) {
    return record("forgets", {in[0], in[1]}, mul(in[0].detach(), in[1].detach()), [in](const BackwardContext& context) {
      return std::vector<Tensor>{mul(context.grad_output(), in[1].detach()), Tensor()};
    });
  };
  CHECK_THAT(gradcheck(forgets, {leaf({1.0}), leaf({2.0})}).message, ContainsText("input 1"));
}

TEST_CASE("gradcheck notices gradients that differ from run to run") {
  int calls = 0;
  const auto drifts = [&calls](const std::vector<Tensor>& in) {
    return record("drifts", {in[0]}, in[0].detach().clone(), [&calls](const BackwardContext& context) {
      return std::vector<Tensor>{scale(context.grad_output(), 1.0 + 1e-12 * ++calls)};
    });
  };
  CHECK_THAT(gradcheck(drifts, {leaf({1.0, 2.0})}).message, ContainsText("other bits the second time"));
}

TEST_CASE("gradcheck refuses what it cannot check") {
  const auto identity = [](const std::vector<Tensor>& in) { return scale(in[0], 1.0); };
  REQUIRE_THROWS_AS(gradcheck(identity, {Tensor::zeros({2}, {.dtype = DType::f64})}), Error);
  REQUIRE_THROWS_AS(gradcheck(identity, {set_requires_grad(Tensor::zeros({2}))}), Error);
}
