// Differentiable sums over all elements.
#include "tandem/autograd/functions/reduce.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/reduce/sum.h"

namespace tandem::autograd {

Tensor sum(const Tensor& input) {
  const Tensor x = cast(input, result_dtype(OpKind::reduction, input.dtype()));
  const Tensor y = Tensor::empty({}, x.options());
  unrecorded([&] { kernels::sum(x, Out(y)); });
  return record("sum", {x}, y, [shape = x.shape()](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().expand(shape)};
  });
}

Tensor mean(const Tensor& input) {
  const Tensor x = cast(input, result_dtype(OpKind::reduction, input.dtype()));
  const Tensor y = Tensor::empty({}, x.options());
  unrecorded([&] { kernels::mean(x, Out(y)); });
  return record("mean", {x}, y, [shape = x.shape()](const BackwardContext& context) {
    const Tensor each = empty_like(context.grad_output());
    kernels::scale(context.grad_output(), 1.0 / static_cast<double>(element_count(shape)), Out(each));
    return std::vector<Tensor>{each.expand(shape)};
  });
}

}  // namespace tandem::autograd
