// Every op of the table over every shape that it takes.
#include "autograd/functions.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "core/random.h"
#include "tests/op_cases/op_case.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

/// Calls `test(op, call, shape)` for every op (each in its own section), shape and variant.
template <typename Test>
void for_each_call(Test&& test) {
  for (const OpCase& op : op_table()) {
    DYNAMIC_SECTION(op.name) {
      std::size_t calls = 0;
      for (const Shape& shape : nasty_shapes()) {
        for (const OpCall& call : op.calls(shape)) {
          INFO("op " << op.name << " " << call.variant << ", images " << to_string(shape));
          test(op, call, shape);
          ++calls;
        }
      }
      CHECK(calls >= 3);
    }
  }
}

/// Names the first element of `actual` that is farther from `expected` than bound(i), or nothing.
template <typename Bound>
std::string first_outside(const Tensor& actual, const Tensor& expected, Bound&& bound) {
  if (actual.shape() != expected.shape()) return describe(actual) + " instead of " + describe(expected);
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double allowed = bound(i);
    if (!(std::abs(a[i] - e[i]) <= allowed)) {
      return fmt::format("element {} of {}: {:.9g}, expected {:.9g} within {:.3g}", i, describe(actual), a[i], e[i],
                         allowed);
    }
  }
  return {};
}

std::string first_difference(const Tensor& actual, const Tensor& expected) {
  return first_outside(actual, expected, [](std::size_t) { return 0.0; });
}

/// Output rounding of the dtype, plus the roundings of `terms` additions in its compute type (f32 for the half types).
std::string outside_forward_bound(const OpCall& call, const Tensor& output, const std::vector<Tensor>& f64_inputs) {
  const Tensor expected = call.reference(f64_inputs);
  const Tensor size = call.magnitude ? call.magnitude(f64_inputs) : call.reference(absolute(f64_inputs));
  const std::vector<double> sizes = size.to_vector<double>(), values = expected.to_vector<double>();
  const double compute = std::max(unit_roundoff(DType::f32), unit_roundoff(output.dtype()) * 0x1p-29);
  const double round_off = unit_roundoff(output.dtype());
  return first_outside(output, expected, [&](std::size_t i) {
    const double from_sums =
        (call.terms + 2.0) * (output.dtype() == DType::f64 ? round_off : compute) * std::abs(sizes[i]);
    return from_sums + round_off * (std::abs(values[i]) + from_sums) + smallest_positive(output.dtype());
  });
}

Tensor random_like(const Tensor& tensor, bool integers, std::uint32_t seed) {
  return make_input({.shape = tensor.shape(), .layout = Layout::channels_last}, tensor.dtype(), integers, seed);
}

/// Gradients of `inputs` after backward from `output`; zeros where none arrived, undefined where none is wanted.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& inputs, const Tensor& output, const Tensor& grad_output) {
  if (autograd::requires_grad(output)) autograd::backward(output, grad_output);
  std::vector<Tensor> gradients;
  for (const Tensor& input : inputs) {
    const bool wanted = autograd::requires_grad(input);
    gradients.push_back(!wanted                           ? Tensor()
                        : autograd::grad(input).defined() ? autograd::grad(input)
                                                          : zeros_like(input));
  }
  return gradients;
}

std::vector<Tensor> f64_leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves = as_f64(inputs);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (autograd::requires_grad(inputs[i])) autograd::set_requires_grad(leaves[i]);
  }
  return leaves;
}

double norm(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("every op has at least three bad inputs, each refused in one line") {
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

TEST_CASE("integer inputs give exact outputs and gradients") {
  const PoisonScope poison;
  for_each_call([](const OpCase& op, const OpCall& call, const Shape&) {
    if (!op.exact_on_integers) return;
    const std::vector<Tensor> inputs = make_inputs(call, DType::f32, true, 1);
    const std::vector<Tensor> wide = f64_leaves(inputs);
    const Tensor output = call.function(inputs), wide_output = call.function(wide);
    const Tensor expected = call.reference(as_f64(inputs));
    CHECK(first_difference(output, expected) == "");
    CHECK(first_difference(wide_output, expected) == "");
    const Tensor grad_output = random_like(output, true, 7);
    const std::vector<Tensor> gradients = gradients_of(inputs, output, grad_output);
    const std::vector<Tensor> wide_gradients = gradients_of(wide, wide_output, as_f64({grad_output}).front());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      INFO("gradient of input " << i);
      if (gradients[i].defined()) CHECK(first_difference(gradients[i], wide_gradients[i]) == "");
    }
  });
}

TEST_CASE("random inputs stay within the derived bound") {
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

TEST_CASE("inputs with gaps give what dense ones give") {
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

TEST_CASE("gradcheck passes in f64") {
  const PoisonScope poison;
  for_each_call([](const OpCase&, const OpCall& call, const Shape&) {
    const std::vector<Tensor> inputs = make_inputs(call, DType::f64, false, 4);
    const auto report = autograd::gradcheck(call.function, inputs, {.max_elements = 48});
    CHECK(report.message == "");
  });
}

// <grad, v> in the storage dtype against the central difference of <w, f(x + h v)> in f64 at the same (rounded) x.
TEST_CASE("directional derivatives agree in every storage dtype") {
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
