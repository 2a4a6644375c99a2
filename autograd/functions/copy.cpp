// Differentiable copies.
#include "tandem/autograd/functions/copy.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/record.h"

namespace tandem::autograd {

Tensor contiguous(const Tensor& x, Layout layout) {
  require_defined("contiguous", x);
  if (x.is_dense(layout)) return x;
  const Tensor y = unrecorded([&] { return x.contiguous(layout); });
  return record("contiguous", {x}, y,
                [](const BackwardContext& context) { return std::vector<Tensor>{context.grad_output()}; });
}

Tensor clone(const Tensor& x) {
  require_defined("clone", x);
  const Tensor y = unrecorded([&] { return x.clone(); });
  return record("clone", {x}, y,
                [](const BackwardContext& context) { return std::vector<Tensor>{context.grad_output()}; });
}

Tensor to(const Tensor& x, Device device) {
  require_defined("to", x);
  if (x.device() == device) return x;
  const Tensor y = unrecorded([&] { return x.to(device); });
  return record("to", {x}, y, [from = x.device()](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().to(from)};
  });
}

}  // namespace tandem::autograd
