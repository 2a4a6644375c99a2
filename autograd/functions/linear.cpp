// Differentiable fully connected layer, plain or with ReLU.
#include "autograd/functions/linear.h"

#include "autograd/precision.h"
#include "autograd/record.h"
#include "kernels/gemm/linear.h"

namespace tandem::autograd {

namespace {

Tensor apply(std::string_view name, const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu,
             GemmImpl impl) {
  const Tensor x = input_for(OpKind::linear, input, weight);
  require(x.rank() == 2 && weight.rank() == 2 && x.size(1) == weight.size(1),
          "{}: needs rows [N, I] and a weight [O, I], got {} and {}", name, describe(x), describe(weight));
  Tensor rows, matrix;
  const Tensor y = Tensor::empty({x.size(0), weight.size(0)}, x.options());
  unrecorded([&] {
    rows = x.contiguous();
    matrix = weight.contiguous();
    kernels::linear_forward(rows, matrix, bias.defined() ? bias.contiguous() : bias, relu, y, impl);
  });
  if (!should_record({x, weight, bias})) return y;
  return record(name, {x, weight, bias}, y,
                [impl, saved_x = SavedTensor(rows), saved_weight = SavedTensor(matrix),
                 saved_y = SavedTensor(relu ? y : Tensor())](const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous();
                  const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
                  std::vector<Tensor> gradients(3);
                  if (context.needs(0)) gradients[0] = Tensor::empty(from_x.shape(), grad_y.options());
                  if (context.needs(1)) gradients[1] = Tensor::empty(from_weight.shape(), grad_y.options());
                  if (context.needs(2)) gradients[2] = Tensor::empty({grad_y.size(1)}, grad_y.options());
                  kernels::linear_backward(from_x, from_weight, saved_y.get(), grad_y, gradients[0], gradients[1],
                                           gradients[2], impl);
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
