// Differentiable fully connected layer, plain or with ReLU.
#include "tandem/autograd/functions/linear.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/gemm/linear.h"

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
    kernels::linear_forward(rows, matrix, bias.defined() ? bias.contiguous() : bias, relu, Out(y), impl);
  });
  if (!should_record({x, weight, bias})) return y;
  return record(name, {x, weight, bias}, y,
                [impl, saved_x = SavedTensor(rows), saved_weight = SavedTensor(matrix),
                 saved_y = SavedTensor(relu ? y : Tensor())](const BackwardContext& context) {
                  const Tensor grad_y = context.grad_output().contiguous();
                  const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
                  const std::vector<Tensor> gradients{context.new_gradient(0), context.new_gradient(1),
                                                      context.new_gradient(2)};
                  kernels::linear_backward(from_x, from_weight, saved_y.get(), grad_y, Out(gradients[0]),
                                           Out(gradients[1]), Out(gradients[2]), impl);
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
