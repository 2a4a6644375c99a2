// Every op of the table over every shape that it takes.
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/random.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tests/op_cases/for_each_call.h"
#include "tests/op_cases/op_checks.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor rounded_to(DType dtype, const Tensor& x) {
  const Tensor out = Tensor::empty(x.shape(), {.dtype = dtype});
  kernels::reference::cast(x, Out(out));
  return out;
}

}  // namespace

TEST_CASE("every op has at least three bad inputs, each refused in one line", "[op_table]") {
  for (const OpCase& op : op_table()) {
    DYNAMIC_SECTION(op.name) {
      CHECK(op.bad_inputs.size() >= 3);
      for (const BadInput& bad : op.bad_inputs) {
        INFO("op " << op.name << ": " << bad.what);
        std::string text = "no error at all";
        try {
          bad.call();
        } catch (const Error& error) {
          text = error.what();
        }
        CHECK_THAT(text, ContainsText(bad.message));
        CHECK(text.find('\n') == std::string::npos);
      }
    }
  }
}

// Small whole numbers add up exactly in float, so that one rounding to the storage dtype is all there may be.
TEST_CASE("integer inputs give exact outputs and gradients", "[op_table]") {
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    if (!op.exact_on_integers) return;
    for (const DType dtype : op.dtypes) {
      INFO("dtype " << name_of(dtype));
      const std::vector<Tensor> inputs = make_inputs(call, dtype, true, 1);
      const std::vector<Tensor> wide = f64_leaves(inputs);
      const Tensor output = call.function(inputs), wide_output = call.function(wide);
      const Tensor expected = call.reference(as_f64(inputs));
      CHECK(first_difference(output, rounded_to(output.dtype(), expected)) == "");
      CHECK(first_difference(wide_output, expected) == "");
      const Tensor grad_output = random_like(output, true, 7);
      const std::vector<Tensor> gradients = gradients_of(inputs, output, grad_output);
      const std::vector<Tensor> wide_gradients = gradients_of(wide, wide_output, as_f64({grad_output}).front());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        INFO("gradient of input " << i);
        if (!gradients[i].defined()) continue;
        CHECK(first_difference(gradients[i], rounded_to(gradients[i].dtype(), wide_gradients[i])) == "");
      }
    }
  });
}

TEST_CASE("random inputs stay within the derived bound", "[op_table]") {
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    std::vector<DType> dtypes = op.dtypes;
    dtypes.push_back(DType::f64);
    for (const DType dtype : dtypes) {
      INFO("dtype " << name_of(dtype));
      const std::vector<Tensor> inputs = make_inputs(call, dtype, false, 2);
      CHECK(outside_forward_bound(call, call.function(inputs), as_f64(inputs)) == "");
    }
  });
}

TEST_CASE("inputs with gaps give what dense ones give", "[op_table]") {
  const PoisonScope poison;
  for_each_call([](const OpCase&, const OpCall& call, const Shape&) {
    const std::vector<Tensor> inputs = make_inputs(call, DType::f32, false, 3);
    std::vector<Tensor> views;
    for (const Tensor& input : inputs) {
      views.push_back(with_gaps(input));
      autograd::set_requires_grad(views.back(), autograd::requires_grad(input));
    }
    const Tensor output = call.function(views);
    CHECK(outside_forward_bound(call, output, as_f64(inputs)) == "");
    const Tensor grad_output = random_like(output, false, 8);
    const std::vector<Tensor> expected = gradients_of(inputs, call.function(inputs), grad_output);
    const std::vector<Tensor> gradients = gradients_of(views, output, with_gaps(grad_output));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      INFO("gradient of input " << i);
      // Two orders of summation: each within terms * u of the exact sum; the norm stands for the sum of sizes.
      const double slack = 8.0 * (call.terms + 2.0) * unit_roundoff(DType::f32) * norm(expected[i].to_vector<double>());
      CHECK(first_outside(gradients[i], expected[i], [&](std::size_t) { return slack; }) == "");
    }
  });
}

TEST_CASE("gradcheck passes in f64", "[op_table]") {
  const PoisonScope poison;
  for_each_call([](const OpCase&, const OpCall& call, const Shape&) {
    const std::vector<Tensor> inputs = make_inputs(call, DType::f64, false, 4);
    const auto report = autograd::gradcheck(call.function, inputs, {.max_elements = 48});
    CHECK(report.message == "");
  });
}

// <grad, v> in the storage dtype against the central difference of <w, f(x + h v)> in f64 at the same (rounded) x.
TEST_CASE("directional derivatives agree in every storage dtype", "[op_table]") {
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    for (const DType dtype : op.dtypes) {
      const std::vector<Tensor> inputs = make_inputs(call, dtype, false, 5);
      const Tensor output = call.function(inputs);
      const Tensor grad_output = random_like(output, false, 9);
      const std::vector<double> weights = grad_output.to_vector<double>();
      const std::vector<Tensor> gradients = gradients_of(inputs, output, grad_output);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!gradients[i].defined()) continue;
        INFO(name_of(dtype) << ", gradient of input " << i);
        const std::vector<double> direction = random_like(as_f64(inputs)[i], false, 10).to_vector<double>();
        constexpr double kStep = 1e-6;
        const auto along = [&](double distance) {
          std::vector<Tensor> moved = as_f64(inputs);
          std::vector<double> values = moved[i].to_vector<double>();
          for (std::size_t k = 0; k < values.size(); ++k) values[k] += distance * direction[k];
          moved[i] = Tensor::from(values, moved[i].shape());
          return dot(call.function(moved).to_vector<double>(), weights);
        };
        const double numeric = (along(kStep) - along(-kStep)) / (2.0 * kStep);
        const std::vector<double> gradient = gradients[i].to_vector<double>();
        const double size = norm(gradient) * norm(direction);
        const double rounding = 2.0 * (call.terms + 2.0) * unit_roundoff(DType::f32) + 4.0 * unit_roundoff(dtype);
        const double difference_error = 1e-6 * (size + norm(weights));
        CHECK(std::abs(dot(gradient, direction) - numeric) <=
              rounding * size + difference_error +
                  smallest_positive(dtype) * norm(direction) * std::sqrt(gradient.size()));
      }
    }
  });
}
