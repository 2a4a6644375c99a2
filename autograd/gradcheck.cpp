// Finite differences against backward().
#include "tandem/autograd/gradcheck.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/out.h"
#include "tandem/core/random.h"

#include <cmath>
#include <cstring>

namespace tandem::autograd {

namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Weights for the sum over the outputs: in +-[0.5, 1.5), so that no output is passed over.
Tensor random_weights(const Tensor& output, std::uint32_t step) {
  const RandomKey key{.seed = 20240229, .stream = RandomStream::test, .step = step};
  std::vector<double> values(static_cast<std::size_t>(output.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double magnitude = 0.5 + key.uniform(2 * i);
    values[i] = key.bits(2 * i + 1) % 2 == 0 ? magnitude : -magnitude;
  }
  return Tensor::from(values, output.shape(), Layout::row_major, output.device());
}

double weighted_sum(const std::vector<Tensor>& outputs, const std::vector<std::vector<double>>& weights) {
  double sum = 0.0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<double> values = outputs[i].to_vector<double>();
    for (std::size_t k = 0; k < values.size(); ++k) sum += values[k] * weights[i][k];
  }
  return sum;
}

/// Gradients of the weighted sum, dense like `inputs`; undefined for inputs that need none.
std::vector<Tensor> analytic_gradients(const Function& function, const std::vector<Tensor>& inputs,
                                       std::vector<std::vector<double>>& weights) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.detach());
    if (requires_grad(input)) set_requires_grad(leaves.back());
  }
  weights.clear();
  const std::vector<Tensor> outputs = function(leaves);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor weight = random_weights(outputs[i], static_cast<std::uint32_t>(i));
    weights.push_back(weight.to_vector<double>());
    // Outputs may share parts of the tape.
    if (requires_grad(outputs[i])) backward(outputs[i], weight, {.retain_graph = i + 1 < outputs.size()});
  }
  std::vector<Tensor> gradients;
  for (const Tensor& leaf : leaves) {
    gradients.push_back(requires_grad(leaf) ? zeros_like(leaf) : Tensor());
    if (gradients.back().defined() && grad(leaf).defined()) gradients.back().copy_from(grad(leaf));
  }
  return gradients;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || a.numel() == 0) return true;
  const Tensor left = a.to(Device{}), right = b.to(Device{});
  return std::memcmp(left.raw_data(), right.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

}  // namespace

GradcheckReport gradcheck(const Function& function, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  bool any = false;
  for (const Tensor& input : inputs) {
    if (!requires_grad(input)) continue;
    any = true;
    require(input.dtype() == DType::f64, "gradcheck: needs f64 inputs, got {}", describe(input));
  }
  require(any, "gradcheck: none of the {} inputs requires a gradient; call set_requires_grad", inputs.size());

  const GradMode recording(true);
  std::vector<std::vector<double>> weights;
  const std::vector<Tensor> gradients = analytic_gradients(function, inputs, weights);
  const std::vector<Tensor> again = analytic_gradients(function, inputs, weights);
  GradcheckReport report;
  const auto complain = [&](std::string message) {
    if (report.passed) report.message = std::move(message);
    report.passed = false;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!same_bits(gradients[i], again[i]))
      complain(fmt::format("gradcheck: input {} got other bits the second time", i));
  }

  const NoGrad no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].defined() || inputs[i].numel() == 0) continue;
    std::vector<Tensor> varied = inputs;
    const Tensor work = empty_like(gradients[i]);
    work.copy_from(inputs[i]);
    varied[i] = work;
    const Tensor host = work.to(Device{}), host_gradient = gradients[i].to(Device{});
    double* const elements = Out(host).data<double>();
    const double* const analytic = host_gradient.data<double>();
    const auto sum_at = [&](std::int64_t element, double value) {
      elements[element] = value;
      if (!host.is_same(work)) work.copy_from(host);
      return weighted_sum(function(varied), weights);
    };
    const std::int64_t count = work.numel();
    const std::int64_t step = options.max_elements > 0 ? std::max<std::int64_t>(1, count / options.max_elements) : 1;
    for (std::int64_t k = 0; k < count; k += step) {
      const double value = elements[k];
      const double above = sum_at(k, value + options.eps);
      const double below = sum_at(k, value - options.eps);
      elements[k] = value;
      const double numeric = (above - below) / (2.0 * options.eps);
      const double error = std::abs(numeric - analytic[k]);
      report.worst_error = std::max(report.worst_error, error);
      if (!(error <= options.atol + options.rtol * std::abs(numeric))) {
        complain(fmt::format("gradcheck: input {} {}, element {} in memory: numeric {:.9g}, analytic {:.9g}", i,
                             describe(work), k, numeric, analytic[k]));
      }
    }
  }
  return report;
}

GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, GradcheckOptions options) {
  return gradcheck(Function([&](const std::vector<Tensor>& given) { return std::vector<Tensor>{function(given)}; }),
                   inputs, options);
}

}  // namespace tandem::autograd
