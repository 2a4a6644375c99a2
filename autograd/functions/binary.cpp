// Recording functions of two tensors.
#include "tandem/autograd/functions/binary.h"

#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/record.h"

namespace tandem::autograd {

namespace {

/// What backward keeps, and how it comes to the gradient of one operand.
struct BinaryBackward {
  std::string_view op;
  kernels::Binary function;
  SavedTensor a, b;
  Shape a_shape, b_shape;

  /// `grad` stands in for what is not needed.
  static Tensor operand(const SavedTensor& saved, bool needed, const Tensor& grad) {
    return needed ? saved.get().expand(grad.shape()) : grad;
  }

  Tensor gradient(kernels::Side side, const Tensor& grad) const {
    const kernels::Needs needs = kernels::needed_by(function, side);
    const Tensor left = operand(a, needs.a, grad), right = operand(b, needs.b, grad);
    Tensor result = Tensor::empty(grad.shape(), grad.options(Layout::channels_last));
    for (const Tensor* const model : {&right, &left, &grad}) {
      if (model->is_dense() && model->numel() > 0) result = empty_like(*model);
    }
    kernels::binary_backward(op, function, side, left, right, grad, Out(result));
    return sum_to_shape(result, side == kernels::Side::left ? a_shape : b_shape);
  }
};

}  // namespace

Tensor binary(std::string_view op, kernels::Binary function, const Tensor& a, const Tensor& b) {
  const Tensor y = unrecorded([&] {
    const Broadcast operands = broadcast(op, a, b);
    kernels::binary_forward(op, function, operands.a, operands.b, Out(operands.out));
    return operands.out;
  });
  if (!should_record({a, b})) return y;
  const auto kept = [&](bool kernels::Needs::* operand, const Tensor& tensor) {
    const bool needed = (requires_grad(a) && kernels::needed_by(function, kernels::Side::left).*operand) ||
                        (requires_grad(b) && kernels::needed_by(function, kernels::Side::right).*operand);
    return needed ? SavedTensor(tensor) : SavedTensor();
  };
  const BinaryBackward backward{op,        function, kept(&kernels::Needs::a, a), kept(&kernels::Needs::b, b),
                                a.shape(), b.shape()};
  return record(op, {a, b}, y, [backward](const BackwardContext& context) {
    const Tensor& grad = context.grad_output();
    return std::vector<Tensor>{context.needs(0) ? backward.gradient(kernels::Side::left, grad) : Tensor(),
                               context.needs(1) ? backward.gradient(kernels::Side::right, grad) : Tensor()};
  });
}

}  // namespace tandem::autograd
