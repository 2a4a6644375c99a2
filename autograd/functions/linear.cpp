// Differentiable fully connected layer, plain or with ReLU.
#include "tandem/autograd/functions/linear.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/gemm/linear.h"

namespace tandem::autograd {

namespace {

void check(std::string_view name, const Tensor& input, const Tensor& weight) {
  require(input.defined() && weight.defined(), "{}: needs a defined input and weight, got {} and {}", name, input,
          weight);
  require(is_floating(input.dtype()) && is_floating(weight.dtype()),
          "{}: needs a floating input and weight, got {} and {}; use cast", name, input, weight);
  require(input.rank() >= 1 && weight.rank() == 2 && input.size(-1) == weight.size(1),
          "{}: needs an input [..., I] and a weight [O, I], got {} and {}; flatten or transpose one", name, input,
          weight);
}

/// The last dimension as the columns of a matrix: a copy where strides do not allow a view.
Tensor matrix_of(const Tensor& x, std::int64_t rows) { return x.contiguous().view({rows, x.size(-1)}); }

Tensor apply(std::string_view name, const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu,
             GemmImpl impl) {
  check(name, input, weight);
  const Tensor x = input_for(OpKind::linear, input, weight);
  require(x.dtype() == weight.dtype(), "{}: input {} and weight {} must have one dtype; cast the input to {}", name, x,
          weight, weight.dtype());
  require(!bias.defined() || (bias.shape() == Shape{weight.size(0)} && bias.dtype() == weight.dtype()),
          "{}: the bias of a weight {} should be {}[{}], got {}", name, weight, weight.dtype(), weight.size(0), bias);
  Shape y_shape = x.shape();
  y_shape[-1] = weight.size(0);
  std::int64_t count = 1;
  for (int dim = 0; dim + 1 < x.rank(); ++dim) count *= x.size(dim);
  Tensor rows, matrix, y_rows;
  const Tensor y = Tensor::empty(y_shape, x.options());
  unrecorded([&] {
    rows = matrix_of(x, count);
    matrix = weight.contiguous();
    y_rows = y.view({count, weight.size(0)});
    kernels::linear_forward(rows, matrix, bias.defined() ? bias.contiguous() : bias, relu, Out(y_rows), impl);
  });
  if (!should_record({x, weight, bias})) return y;
  return record(name, {x, weight, bias}, y,
                [impl, count, saved_x = SavedTensor(rows), saved_weight = SavedTensor(matrix),
                 saved_y = SavedTensor(relu ? y_rows : Tensor())](const BackwardContext& context) {
                  const Tensor grad_y = matrix_of(context.grad_output(), count);
                  const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
                  const std::vector<Tensor> gradients{context.new_gradient(0), context.new_gradient(1),
                                                      context.new_gradient(2)};
                  const Tensor grad_x = gradients[0].defined() ? gradients[0].view(from_x.shape()) : gradients[0];
                  kernels::linear_backward(from_x, from_weight, saved_y.get(), grad_y, Out(grad_x), Out(gradients[1]),
                                           Out(gradients[2]), impl);
                  return gradients;
                });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, GemmImpl impl) {
  return apply("linear", x, weight, bias, false, impl);
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, GemmImpl impl) {
  return apply("linear_relu", x, weight, bias, true, impl);
}

}  // namespace tandem::autograd
