// Compares what backward() computes with finite differences.
#pragma once

#include "tandem/core/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::autograd {

/// How close is close enough. The defaults are for f64.
struct GradcheckOptions {
  /// Step of the central difference. In f64 its error is about 1e-12 f''' from the step and 1e-10 |f| from rounding.
  double eps = 1e-6;
  /// A derivative is right if |numeric - analytic| <= atol + rtol * |numeric|.
  double atol = 1e-5;
  /// Relative part of it.
  double rtol = 1e-3;
  /// About how many elements of each input are varied, spread evenly: fewer than twice as many. 0: all.
  std::int64_t max_elements = 0;
};

/// True in a condition if everything agreed; otherwise `message` names the first input, and the element, that did not.
struct GradcheckReport {
  bool passed = true;   ///< whether all derivatives were right
  std::string message;  ///< empty where they were
  /// The largest |numeric - analytic| met.
  double worst_error = 0.0;

  /// The same as `passed`.
  explicit operator bool() const { return passed; }
};

/// Checks the gradients of `function` with respect to every input that requires a gradient. Each element of such an
/// input is varied by +-eps, and the change of a randomly weighted sum over all output elements is compared with that
/// sum's gradient. backward() is run twice and must give the same bits both times. Throws Error where one of these
/// inputs is not f64, or none requires a gradient. Keep the inputs away from kinks (0 of relu, ties of max).
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/autograd/variable.h"
///     const Tensor x = set_requires_grad(Tensor::from<double>({0.3, -1.2}, {2}));
///     const auto function = [](const std::vector<Tensor>& inputs) { return gelu(inputs[0]); };
///     const GradcheckReport report = gradcheck(function, {x});
///     const bool agreed = report.passed;  // true
GradcheckReport gradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, GradcheckOptions options = {});
GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, GradcheckOptions options = {});

}  // namespace tandem::autograd
