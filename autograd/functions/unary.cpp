// Recording functions of one tensor.
#include "tandem/autograd/functions/unary.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"

namespace tandem::autograd {

namespace {

/// As PyTorch's autocast has it.
bool is_exponential(kernels::Unary function) {
  using kernels::Unary;
  switch (function) {
    case Unary::exp:
    case Unary::expm1:
    case Unary::log:
    case Unary::log1p:
    case Unary::softplus:
    case Unary::rsqrt:
    case Unary::reciprocal:
    case Unary::pow_number:
    case Unary::divide_into:
      return true;
    default:
      return false;
  }
}

}  // namespace

Tensor unary(std::string_view op, kernels::Unary function, const Tensor& input, const kernels::Numbers& numbers) {
  require(input.defined(), "{}: needs a defined tensor, got {}", op, input);
  const Tensor x = is_exponential(function) ? cast(input, result_dtype(OpKind::exponential, input.dtype())) : input;
  const Tensor y = empty_like(x);
  unrecorded([&] { kernels::unary_forward(op, function, x, numbers, Out(y)); });
  if (!should_record({x})) return y;
  SavedTensor saved;
  const kernels::Keep keep = kernels::kept_by(function);
  if (keep != kernels::Keep::nothing) saved = SavedTensor(keep == kernels::Keep::input ? x : y);
  return record(op, {x}, y, [=](const BackwardContext& context) {
    const Tensor& grad_y = context.grad_output();
    const Tensor kept = keep == kernels::Keep::nothing ? grad_y : saved.get();
    const Tensor grad_x = empty_like(kept);
    kernels::unary_backward(op, function, kept, grad_y, numbers, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
