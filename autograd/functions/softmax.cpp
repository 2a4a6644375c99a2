// Differentiable softmax: a dimension becomes the rows of a matrix.
#include "tandem/autograd/functions/softmax.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/rows.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/activation/softmax.h"

namespace tandem::autograd {

namespace {

Tensor softmax_of(std::string_view op, kernels::SoftmaxResult result, const Tensor& x, int dim) {
  require(x.defined() && is_floating(x.dtype()) && x.rank() >= 1,
          "{}: needs a floating tensor of one dimension or more, got {}; use cast or reshape", op, x);
  const Rows rows(x, dimension_of(op, x, dim));
  const TensorOptions options{result_dtype(OpKind::exponential, x.dtype()), Layout::row_major, x.device()};
  const Tensor matrix = Tensor::empty(rows.shape(rows.size()), options);
  const Tensor y = unrecorded([&] {
    kernels::softmax_forward(result, rows.of(x), Out(matrix));
    return rows.back(matrix);
  });
  if (!should_record({x})) return y;
  return record(op, {x}, y,
                [result, rows, saved = SavedTensor(matrix), x_options = x.options()](const BackwardContext& context) {
                  const Tensor grad_x = Tensor::empty(rows.shape(rows.size()), x_options);
                  kernels::softmax_backward(result, saved.get(), rows.of(context.grad_output()), Out(grad_x));
                  return std::vector<Tensor>{rows.back(grad_x)};
                });
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  return softmax_of("softmax", kernels::SoftmaxResult::probabilities, x, dim);
}

Tensor log_softmax(const Tensor& x, int dim) {
  return softmax_of("log_softmax", kernels::SoftmaxResult::logarithms, x, dim);
}

}  // namespace tandem::autograd
