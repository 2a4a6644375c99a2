// Differentiable layer normalisation.
#include "tandem/autograd/functions/layer_norm.h"

#include "tandem/autograd/functions/row_norm.h"
#include "tandem/core/describe.h"

namespace tandem::autograd {

namespace {

constexpr std::string_view kOp = "layer_norm";

bool ends_with(const Shape& shape, const Shape& end) {
  if (end.empty() || shape.rank() < end.rank()) return false;
  for (int dim = 1; dim <= end.rank(); ++dim) {
    if (shape[-dim] != end[-dim]) return false;
  }
  return true;
}

void check_parameter(std::string_view what, const Tensor& tensor, const Shape& shape) {
  require(!tensor.defined() || (is_floating(tensor.dtype()) && tensor.shape() == shape),
          "{}: {} must be floating and of the normalized shape {}, got {}", kOp, what, shape, tensor);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  require(x.defined() && is_floating(x.dtype()), "{}: needs a floating tensor, got {}; use cast", kOp, x);
  require(ends_with(x.shape(), normalized_shape),
          "{}: normalized_shape {} must be the last sizes of the input, got {}; permute it, or give its last sizes",
          kOp, normalized_shape, x);
  check_parameter("weight", weight, normalized_shape);
  check_parameter("bias", bias, normalized_shape);
  return row_norm(kOp, x, element_count(normalized_shape), weight, bias, {.eps = eps});
}

}  // namespace tandem::autograd
