// Making the runs, and running them.
#include "tests/op_cases/golden/golden_run.h"

#include "tandem/autograd/variable.h"
#include "tests/op_cases/op_checks.h"

#include <algorithm>

namespace tandem::test {

namespace {

constexpr std::uint32_t kInputSeed = 21, kGradientSeed = 11;

/// Whole numbers, or those plus some 17ths: correctly rounded from integers, and so the same bits with every compiler
/// and C library.
Tensor values_of(const OpInput& input, DType dtype, bool integers, std::uint32_t seed) {
  const Tensor whole = make_input(input, dtype, true, seed);
  if (integers || input.values == Values::labels) return whole;
  std::vector<double> values = whole.to_vector<double>();
  const std::vector<double> parts = make_input(input, DType::f64, true, seed + 1).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += parts[i] / 17.0;
  return dispatch_floating(dtype, "values_of", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> typed;
    for (const double value : values) typed.push_back(static_cast<T>(static_cast<compute_t<T>>(value)));
    return Tensor::from(typed, input.shape, input.layout);
  });
}

std::vector<Tensor> inputs_of(const OpCall& call, DType dtype, bool integers) {
  std::vector<Tensor> inputs;
  for (const OpInput& input : call.inputs) {
    inputs.push_back(values_of(input, dtype, integers, kInputSeed + 10 * static_cast<std::uint32_t>(inputs.size())));
    if (input.differentiable && input.values != Values::labels) autograd::set_requires_grad(inputs.back());
  }
  return inputs;
}

Tensor grad_output_of(const GoldenRun& run, const Tensor& output) {
  return values_of({.shape = output.shape()}, output.dtype(), run.integers, kGradientSeed);
}

/// The sizes of what is summed up in each gradient: the gradients at |inputs| and |grad_output|.
std::vector<Tensor> gradient_sizes(const GoldenRun& run, const Tensor& grad_output) {
  std::vector<Tensor> inputs = absolute(as_f64(run.inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (autograd::requires_grad(run.inputs[i])) autograd::set_requires_grad(inputs[i]);
  }
  return gradients_of(inputs, run.call.function(inputs), absolute({grad_output}).front());
}

}  // namespace

void for_each_golden_run(const std::vector<Shape>& shapes, const std::vector<std::string>& ops,
                         const std::function<void(const GoldenRun&)>& visit) {
  const std::vector<OpCase>& table = op_table();
  for (const std::string& name : ops) {
    require(std::any_of(table.begin(), table.end(), [&](const OpCase& op) { return op.name == name; }),
            "the op table has no case '{}'", name);
  }
  for (const OpCase& op : table) {
    if (!ops.empty() && std::find(ops.begin(), ops.end(), op.name) == ops.end()) continue;
    for (const Shape& shape : shapes) {
      for (const OpCall& call : op.calls(shape)) {
        for (const DType dtype : kGpuDTypes) {
          if (!runs_on_gpu(op, dtype)) continue;
          for (const bool integers : {true, false}) {
            if (integers && !op.exact_on_integers) continue;
            visit({op, call,
                   fmt::format("{}{}{}, images {}, {}, {}", op.name, call.variant.empty() ? "" : ", ", call.variant,
                               to_string(shape), name_of(dtype), integers ? "integers" : "fractions"),
                   dtype, integers, inputs_of(call, dtype, integers)});
          }
        }
      }
    }
  }
}

std::vector<Tensor> results_of(const GoldenRun& run, Device device) {
  const std::vector<Tensor> inputs = leaves_on(device, run.inputs);
  const Tensor output = run.call.function(inputs);
  std::vector<Tensor> results = gradients_of(inputs, output, grad_output_of(run, output).to(device));
  results.insert(results.begin(), output);
  for (Tensor& result : results) {
    if (result.defined()) result = result.detach().to(Device{}).contiguous();
  }
  return results;
}

std::vector<std::vector<double>> bounds_of(const GoldenRun& run, const std::vector<Tensor>& results) {
  const std::vector<Tensor> wide = f64_leaves(run.inputs);
  const Tensor grad_output = as_f64({grad_output_of(run, results.front())}).front();
  const std::vector<Tensor> exact = gradients_of(wide, run.call.function(wide), grad_output);
  std::vector<std::vector<double>> bounds{forward_bounds(run.call, results.front().dtype(), as_f64(run.inputs))};
  const std::vector<Tensor> sizes = gradient_sizes(run, grad_output);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!exact[i].defined()) {
      bounds.emplace_back();
      continue;
    }
    const double size = std::max(norm(exact[i].to_vector<double>()), norm(sizes[i].to_vector<double>()));
    bounds.emplace_back(static_cast<std::size_t>(exact[i].numel()), gradient_bound(run.call, run.dtype, size));
  }
  return bounds;
}

std::string result_name(std::size_t index) {
  return index == 0 ? "output" : fmt::format("gradient of input {}", index - 1);
}

}  // namespace tandem::test
