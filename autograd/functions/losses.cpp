// Differentiable losses of each element: a function of two tensors, and a sum.
#include "tandem/autograd/functions/losses.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/binary.h"
#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/operators.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/describe.h"

namespace tandem::autograd {

using kernels::Binary;

namespace {

Tensor wide(const Tensor& x) { return cast(x, result_dtype(OpKind::loss, x.dtype())); }

/// Refuses what is no pair of an input and a target.
void check_pair(std::string_view op, const Tensor& input, const Tensor& target) {
  require(input.defined() && target.defined(), "{}: needs an input and a target, got {} and {}", op, input, target);
  require(is_floating(input.dtype()) && is_floating(target.dtype()),
          "{}: needs a floating input and target, got {} and {}; use cast", op, input, target);
  require(input.shape() == target.shape(), "{}: input {} and target {} must have one shape; use reshape or expand", op,
          input, target);
}

Tensor loss_of(std::string_view op, Binary function, const Tensor& input, const Tensor& target, Reduction reduction) {
  check_pair(op, input, target);
  return reduce(binary(op, function, wide(input), wide(target)), reduction);
}

constexpr std::string_view kBinaryCrossEntropy = "binary_cross_entropy_with_logits";

/// The loss where each target is `target`.
Tensor binary_cross_entropy(const Tensor& input, double target) {
  const Tensor everywhere = Tensor::full({}, target, input.options());
  return binary(kBinaryCrossEntropy, Binary::cross_entropy_of_logit, input, everywhere);
}

Tensor weighted_binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& pos_weight) {
  check_pair(kBinaryCrossEntropy, input, target);
  require(is_floating(pos_weight.dtype()) && broadcast_shape(input.shape(), pos_weight.shape()) == input.shape(),
          "{}: pos_weight {} must be floating and broadcast to the input {}; give one weight per class, or one number",
          kBinaryCrossEntropy, pos_weight, input);
  require(wide_dtype(pos_weight.dtype()) == wide_dtype(input.dtype()),
          "{}: input {} and pos_weight {} must have one dtype; use cast", kBinaryCrossEntropy, input, pos_weight);
  const Tensor x = wide(input), t = wide(target);
  // Neither term is negative.
  return wide(pos_weight) * t * binary_cross_entropy(x, 1.0) + (1.0 - t) * binary_cross_entropy(x, 0.0);
}

}  // namespace

Tensor reduce(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::none:
      break;
  }
  return losses;
}

Tensor MseLoss::operator()(const Tensor& input, const Tensor& target, Reduction reduction) const {
  return loss_of("mse_loss", Binary::squared_difference, input, target, reduction);
}

Tensor L1Loss::operator()(const Tensor& input, const Tensor& target, Reduction reduction) const {
  return loss_of("l1_loss", Binary::absolute_difference, input, target, reduction);
}

Tensor BinaryCrossEntropyWithLogits::operator()(const Tensor& input, const Tensor& target, Reduction reduction,
                                                const Tensor& pos_weight) const {
  if (pos_weight.defined()) return reduce(weighted_binary_cross_entropy(input, target, pos_weight), reduction);
  return loss_of(kBinaryCrossEntropy, Binary::cross_entropy_of_logit, input, target, reduction);
}

}  // namespace tandem::autograd
