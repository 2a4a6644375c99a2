// Optimizers against step-by-step formulas in double.
#pragma once

#include "tandem/autograd/variable.h"
#include "tandem/core/out.h"
#include "tandem/core/random.h"
#include "tandem/optim/optimizer.h"
#include "tests/support/catch.h"

#include <cmath>
#include <functional>
#include <vector>

namespace tandem::test {

/// Two parameters of odd sizes (one stored channels_last) with values that depend on nothing but the dtype.
inline std::vector<Tensor> make_parameters(DType dtype) {
  const auto make = [&](const Shape& shape, Layout layout, std::uint32_t step) {
    const RandomKey key{.seed = 5, .stream = RandomStream::test, .step = step};
    const Tensor tensor = Tensor::empty(shape, {.dtype = dtype, .layout = layout});
    dispatch_floating(dtype, "make_parameters", [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        Out(tensor).data<T>()[i] = T(static_cast<compute_t<T>>(key.normal(static_cast<std::uint64_t>(i))));
      }
    });
    return autograd::set_requires_grad(tensor);
  };
  return {make({3, 5, 3, 3}, Layout::channels_last, 1), make({37}, Layout::row_major, 2)};
}

/// The gradient of step `step`: other numbers for each parameter and step.
inline void set_gradient(const Tensor& parameter, std::uint32_t step) {
  const RandomKey key{
      .seed = 6, .stream = RandomStream::test, .step = 100 * step + static_cast<std::uint32_t>(parameter.rank())};
  std::vector<double> values;
  for (std::int64_t i = 0; i < parameter.numel(); ++i) values.push_back(key.normal(static_cast<std::uint64_t>(i)));
  const Tensor wide = Tensor::from(values, parameter.shape());
  const Tensor gradient = empty_like(parameter);
  dispatch_floating(parameter.dtype(), "set_gradient", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> typed;
    for (const double value : values) typed.push_back(T(static_cast<compute_t<T>>(value)));
    gradient.copy_from(Tensor::from(typed, parameter.shape()));
  });
  autograd::set_grad(parameter, gradient);
}

/// Everything an optimizer holds, as numbers.
inline std::vector<std::vector<double>> contents(const optim::Optimizer& optimizer) {
  std::vector<std::vector<double>> result;
  for (const Tensor& parameter : optimizer.parameters()) result.push_back(parameter.to_vector<double>());
  for (const auto& [name, tensor] : optimizer.state_dict()) result.push_back(tensor.to_vector<double>());
  return result;
}

/// One element's update: parameter and gradient in, new parameter out; `state` starts as zeros, `step` as 1.
using ScalarUpdate = std::function<double(double parameter, double gradient, std::vector<double>& state, int step)>;

/// Runs `steps` steps of both and compares after each one. |error| <= steps * c * u * (|parameter| + lr-sized updates):
/// each step rounds a dozen times at most, relative to numbers of the size of the parameter or of its update.
template <typename MakeOptimizer>
void check_against_formula(DType dtype, double unit_roundoff, double update_size, int steps, MakeOptimizer&& make,
                           const ScalarUpdate& formula) {
  const std::vector<Tensor> parameters = make_parameters(dtype);
  const auto optimizer = make(parameters);
  std::vector<std::vector<double>> expected;
  std::vector<std::vector<std::vector<double>>> states;
  for (const Tensor& parameter : parameters) {
    expected.push_back(parameter.to_vector<double>());
    states.emplace_back(expected.back().size(), std::vector<double>(3, 0.0));
  }
  for (int step = 1; step <= steps; ++step) {
    for (const Tensor& parameter : parameters) set_gradient(parameter, static_cast<std::uint32_t>(step));
    std::vector<std::vector<double>> gradients;
    for (const Tensor& parameter : parameters) gradients.push_back(autograd::grad(parameter).to_vector<double>());
    optimizer->step();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::vector<double> actual = parameters[p].to_vector<double>();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        expected[p][i] = formula(expected[p][i], gradients[p][i], states[p][i], step);
        const double bound = step * 16.0 * unit_roundoff * (std::abs(expected[p][i]) + update_size);
        INFO("parameter " << p << ", element " << i << ", step " << step << ": " << actual[i] << " vs "
                          << expected[p][i]);
        REQUIRE(std::abs(actual[i] - expected[p][i]) <= bound);
      }
    }
  }
}

}  // namespace tandem::test
