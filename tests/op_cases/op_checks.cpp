// Comparing outputs and gradients of the op table.
#include "tests/op_cases/op_checks.h"

#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"

#include <algorithm>

namespace tandem::test {

std::vector<Tensor> leaves_on(Device device, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> moved;
  for (const Tensor& input : inputs) {
    moved.push_back(input.detach().to(device));
    autograd::set_requires_grad(moved.back(), autograd::requires_grad(input));
  }
  return moved;
}

bool runs_on_gpu(const OpCase& op, DType dtype) {
  return dtype != DType::f64 && std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end();
}

std::string first_outside(const Tensor& actual, const Tensor& expected,
                          const std::function<double(std::size_t)>& bound) {
  if (actual.shape() != expected.shape()) return describe(actual) + " instead of " + describe(expected);
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double allowed = bound(i);
    if (a[i] != e[i] && !(std::abs(a[i] - e[i]) <= allowed)) {  // equal infinities have no difference
      return fmt::format("element {} of {}: {:.9g}, expected {:.9g} within {:.3g}", i, describe(actual), a[i], e[i],
                         allowed);
    }
  }
  return {};
}

std::string first_difference(const Tensor& actual, const Tensor& expected) {
  return first_outside(actual, expected, [](std::size_t) { return 0.0; });
}

std::vector<double> forward_bounds(const OpCall& call, DType dtype, const std::vector<Tensor>& f64_inputs) {
  const Tensor expected = call.reference(f64_inputs);
  const Tensor size = call.magnitude ? call.magnitude(f64_inputs) : call.reference(absolute(f64_inputs));
  const std::vector<double> values = expected.to_vector<double>();
  std::vector<double> bounds = size.to_vector<double>();
  const double compute = std::max(unit_roundoff(DType::f32), unit_roundoff(dtype) * 0x1p-29);
  const double round_off = unit_roundoff(dtype);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const double from_sums = (call.terms + 2.0) * (dtype == DType::f64 ? round_off : compute) * std::abs(bounds[i]);
    bounds[i] = from_sums + round_off * (std::abs(values[i]) + from_sums) + smallest_positive(dtype);
  }
  return bounds;
}

std::string outside_forward_bound(const OpCall& call, const Tensor& output, const std::vector<Tensor>& f64_inputs) {
  const std::vector<double> bounds = forward_bounds(call, output.dtype(), f64_inputs);
  return first_outside(output, call.reference(f64_inputs), [&](std::size_t i) { return bounds[i]; });
}

double gradient_bound(const OpCall& call, DType dtype, double size) {
  const double rounding = 8.0 * (call.terms + 2.0) * unit_roundoff(DType::f32) + 4.0 * unit_roundoff(dtype);
  return rounding * size + smallest_positive(dtype);
}

Tensor random_like(const Tensor& tensor, bool integers, std::uint32_t seed) {
  return make_input({.shape = tensor.shape(), .layout = Layout::channels_last}, tensor.dtype(), integers, seed);
}

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

}  // namespace tandem::test
