// Recording an operation on the tape: all that a differentiable function needs. Custom functions use it as ours do.
// Example:
//     #include "tandem/autograd/functions.h"
//     Tensor square(const Tensor& x) {
//       const Tensor y = unrecorded([&] { return mul(x, x); });
//       return record("square", {x}, y, [saved = SavedTensor(x)](const BackwardContext& context) {
//         return std::vector<Tensor>{scale(mul(saved.get(), context.grad_output()), 2.0)};
//       });
//     }
//     const Tensor x = set_requires_grad(Tensor::full({}, 3.0));
//     backward(square(x));
//     const double slope = grad(x).item();  // 6
#pragma once

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/error.h"

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::autograd {

/// The gradient that a backward function is asked for.
struct InputGradient {
  bool needed = false;       ///< false: nobody asks for it, and an undefined tensor may be returned
  Shape shape;               ///< of the gradient: that of the input
  DType dtype = DType::f32;  ///< of the gradient
  Tensor place;              ///< where it may be written; mostly undefined
  bool of_leaf = false;      ///< then its memory is counted as MemoryTag::gradients
};

/// What a backward function is given.
class BackwardContext {
 public:
  /// `place_of`: where the gradient of a leaf may be written, as in InputGradient.
  BackwardContext(std::span<const Tensor> grad_outputs, std::span<const InputGradient> inputs,
                  const std::function<Tensor(const Tensor& leaf)>& place_of)
      : grad_outputs_(grad_outputs), inputs_(inputs), place_of_(place_of) {}

  /// Gradient of the `index`-th output, of its shape and dtype, in any strides; undefined if nothing depends on that
  /// output (never for functions of one output).
  const Tensor& grad_output(std::size_t index = 0) const {
    require(index < grad_outputs_.size(), "grad_output({}): the operation has {} outputs", index, grad_outputs_.size());
    return grad_outputs_[index];
  }

  /// False if the `index`-th input needs no gradient: an undefined tensor may then be returned in its place.
  bool needs(std::size_t index) const { return input(index).needed; }

  /// A tensor to write the gradient of the `index`-th input into and to return: of that input's shape and dtype, dense
  /// in `layout`, on the device of the gradients that are there, contents undefined. Undefined if needs() is false.
  /// This is the leaf's gradient place (set_gradient_place) where there is one, it is dense in that layout, and nothing
  /// else is added to this gradient; then nothing has to be copied. Otherwise it is new memory.
  Tensor new_gradient(std::size_t index, Layout layout = Layout::row_major) const;

  /// The same for a tensor that is an input of the operation below this one, whose gradient this one makes in passing:
  /// the operation below is to return it (see Producer).
  Tensor new_gradient_of(const Tensor& tensor, Layout layout = Layout::row_major) const;

 private:
  const InputGradient& input(std::size_t index) const {
    require(index < inputs_.size(), "backward function: there is no input {}: the operation has {}", index,
            inputs_.size());
    return inputs_[index];
  }
  Tensor place_or_memory(const InputGradient& input, Layout layout) const;

  std::span<const Tensor> grad_outputs_;
  std::span<const InputGradient> inputs_;
  const std::function<Tensor(const Tensor& leaf)>& place_of_;
};

/// Returns one gradient per input, in order, each of that input's shape and dtype, or undefined for a zero gradient or
/// one that is not needed. Runs with recording off.
using BackwardFunction = std::function<std::vector<Tensor>(const BackwardContext& context)>;

/// A tensor kept for backward.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// Keeps the elements of `tensor`, which may be undefined.
  explicit SavedTensor(const Tensor& tensor);
  /// A handle of them without autograd metadata. Throws Error if they were changed in place since they were saved.
  Tensor get() const;

 private:
  Tensor tensor_;
  std::uint64_t version_ = 0;
};

/// True if an operation on these inputs would be recorded: recording is on and one of them requires a gradient.
/// Functions ask this to save only what backward needs. Undefined inputs are passed over.
bool should_record(std::initializer_list<Tensor> inputs);

/// What an operation leaves for the operation that takes its result: each derives a struct of its own from it.
struct Producer {
  Producer() = default;
  virtual ~Producer() = default;
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
};

/// Marks `outputs` as made from `inputs` by the operation `name` and returns them; unless should_record(inputs), it
/// returns them as they are. Outputs must be fresh tensors: Error for one with gradient metadata. Undefined inputs
/// (absent bias) are allowed and get no gradient. The tape does not keep `producer` alive: that is up to `backward`.
std::vector<Tensor> record(std::string_view name, const std::vector<Tensor>& inputs, std::vector<Tensor> outputs,
                           BackwardFunction backward, const std::shared_ptr<Producer>& producer = {});
Tensor record(std::string_view name, const std::vector<Tensor>& inputs, const Tensor& output, BackwardFunction backward,
              const std::shared_ptr<Producer>& producer = {});

/// The producer that the operation which made `tensor` was recorded with; null if there was none, or if the tape behind
/// `tensor` has been freed.
std::shared_ptr<Producer> producer_of(const Tensor& tensor);

}  // namespace tandem::autograd
