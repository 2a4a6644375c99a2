// Recording normalisation of rows.
#include "tandem/autograd/functions/row_norm.h"

#include "tandem/autograd/record.h"

namespace tandem::autograd {

namespace {

/// The elements as one vector; an undefined tensor as it is.
Tensor flat(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous().view({tensor.numel()}) : tensor; }

/// The elements as a matrix of that many columns.
Tensor matrix(const Tensor& tensor, std::int64_t columns) { return tensor.contiguous().view({-1, columns}); }

/// A gradient to write, seen as a vector.
Out flat_out(const Tensor& gradient) { return Out(gradient.defined() ? gradient.view({gradient.numel()}) : gradient); }

/// Of no elements: gradients of weight and bias are 0.
Tensor record_nothing(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return record(op, {x, weight, bias}, Tensor::empty(x.shape(), x.options()), [](const BackwardContext& context) {
    const std::vector<Tensor> gradients{context.new_gradient(0), context.new_gradient(1), context.new_gradient(2)};
    for (const Tensor& gradient : gradients) {
      if (gradient.defined()) gradient.zero();
    }
    return gradients;
  });
}

}  // namespace

Tensor row_norm(std::string_view op, const Tensor& x, std::int64_t columns, const Tensor& weight, const Tensor& bias,
                const kernels::RowNormOptions& options) {
  require(options.eps >= 0.0, "{}: eps must not be negative, got {}", op, options.eps);
  if (x.numel() == 0) return record_nothing(op, x, weight, bias);
  const Tensor y = Tensor::empty(x.shape(), x.options());
  const Tensor mean = Tensor::empty({x.numel() / columns},
                                    {.dtype = kernels::row_norm_statistics_dtype(x.dtype()), .device = x.device()});
  const Tensor inverse_std = empty_like(mean);
  const Tensor kept = unrecorded([&] {
    const Tensor from = matrix(x, columns);
    kernels::row_norm_forward(op, from, flat(weight), flat(bias), options, Out(matrix(y, columns)), Out(mean),
                              Out(inverse_std));
    return from;
  });
  if (!should_record({x, weight, bias})) return y;
  return record(op, {x, weight, bias}, y,
                [op, columns, options, mean, inverse_std, saved_x = SavedTensor(kept),
                 saved_weight = SavedTensor(weight)](const BackwardContext& context) {
                  const std::vector<Tensor> gradients{context.new_gradient(0), context.new_gradient(1),
                                                      context.new_gradient(2)};
                  const Out grad_x(gradients[0].defined() ? matrix(gradients[0], columns) : gradients[0]);
                  kernels::row_norm_backward(op, saved_x.get(), flat(saved_weight.get()), mean, inverse_std, options,
                                             matrix(context.grad_output(), columns), grad_x, flat_out(gradients[1]),
                                             flat_out(gradients[2]));
                  return gradients;
                });
}

}  // namespace tandem::autograd
