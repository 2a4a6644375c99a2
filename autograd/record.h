// Recording an operation on the tape: all that a differentiable function needs. Custom functions use it as ours do.
//
//   Tensor square(const Tensor& x) {
//     Tensor y = unrecorded([&] { return /* compute it */; });
//     return record("square", {x}, y, [saved = SavedTensor(x)](const BackwardContext& context) {
//       return std::vector<Tensor>{/* 2 * saved.get() * context.grad_output() */};
//     });
//   }
#pragma once

#include "autograd/grad_mode.h"
#include "autograd/variable.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::autograd {

/// What a backward function is given.
class BackwardContext {
 public:
  BackwardContext(std::span<const Tensor> grad_outputs, std::span<const bool> needed) : grad_outputs_(grad_outputs), needed_(needed) {}

  /// Gradient of the `index`-th output, of its shape and dtype, in any strides; undefined if nothing depends on that output
  /// (never for functions of one output).
  const Tensor& grad_output(std::size_t index = 0) const { return grad_outputs_[index]; }

  /// False if the `index`-th input needs no gradient: an undefined tensor may then be returned in its place.
  bool needs(std::size_t index) const { return needed_[index]; }

 private:
  std::span<const Tensor> grad_outputs_;
  std::span<const bool> needed_;
};

/// Returns one gradient per input, in order, each of that input's shape and dtype, or undefined for a zero gradient or one
/// that is not needed. Runs with recording off.
using BackwardFunction = std::function<std::vector<Tensor>(const BackwardContext& context)>;

/// A tensor kept for backward. Throws on get() if its elements were changed in place since it was saved.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& tensor);
  Tensor get() const;

 private:
  Tensor tensor_;
  std::uint64_t version_ = 0;
};

/// True if an operation on these inputs would be recorded: recording is on and one of them requires a gradient. Functions
/// ask this to save only what backward needs. Undefined inputs are passed over.
bool should_record(std::initializer_list<Tensor> inputs);

/// Marks `outputs` as made from `inputs` by the operation `name` and returns them; does nothing but that unless
/// should_record(inputs). Outputs must be fresh tensors. Undefined inputs (absent bias) are allowed and get no gradient.
std::vector<Tensor> record(std::string_view name, const std::vector<Tensor>& inputs, std::vector<Tensor> outputs, BackwardFunction backward);
Tensor record(std::string_view name, const std::vector<Tensor>& inputs, const Tensor& output, BackwardFunction backward);

}  // namespace tandem::autograd
