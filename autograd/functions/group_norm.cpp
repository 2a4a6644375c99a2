// Differentiable group normalisation.
#include "tandem/autograd/functions/group_norm.h"

#include "tandem/autograd/functions/row_norm.h"
#include "tandem/core/describe.h"

namespace tandem::autograd {

namespace {

constexpr std::string_view kOp = "group_norm";

void check_parameter(std::string_view what, const Tensor& tensor, const Tensor& x) {
  require(!tensor.defined() || (is_floating(tensor.dtype()) && tensor.shape() == Shape{x.size(1)}),
          "{}: {} of an input {} must be floating and of shape [{}], got {}", kOp, what, x, x.size(1), tensor);
}

}  // namespace

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  require(x.defined() && is_floating(x.dtype()) && x.rank() >= 2,
          "{}: needs a floating tensor [N, C, ...], got {}; use cast or reshape", kOp, x);
  require(groups >= 1 && x.size(1) % groups == 0,
          "{}: {} channels of {} cannot be cut into {} groups; give a number that divides them", kOp, x.size(1), x,
          groups);
  check_parameter("weight", weight, x);
  check_parameter("bias", bias, x);
  const std::int64_t images = std::max<std::int64_t>(1, x.size(0)), channels = std::max<std::int64_t>(1, x.size(1));
  const std::int64_t pixels = x.numel() / (images * channels);
  return row_norm(kOp, x, channels / groups * pixels, weight, bias, {.groups = groups, .repeats = pixels, .eps = eps});
}

}  // namespace tandem::autograd
