// A function of a tensor as a module.
#pragma once

#include "tandem/layers/module.h"

#include <functional>
#include <string>

namespace tandem::layers {

/// What a call gives is what `function` gives: the functions of autograd/ and what is made of them, without parameters
/// of its own. `description` is what summaries call it. Throws Error for an empty function. Example:
///     #include "tandem/autograd/functions.h"
///     Lambda twice([](const Tensor& x) { return autograd::scale(x, 2.0); }, "Twice");
///     const std::vector<float> values = twice(Tensor::full({2}, 3)).to_vector<float>();  // {6, 6}
class Lambda final : public Module {
 public:
  /// What forward is.
  using Function = std::function<Tensor(const Tensor& input)>;

  /// `description` is what describe() gives. Throws Error for an empty function.
  explicit Lambda(Function function, std::string description = "Lambda");
  Tensor forward(const Tensor& input) override { return function_(input); }
  std::string describe() const override { return description_; }

 private:
  Function function_;
  std::string description_;
};

}  // namespace tandem::layers
