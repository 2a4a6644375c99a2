// What a conv_bias_relu and one right above it share. Internal to autograd/.
#pragma once

#include "core/tensor.h"

namespace tandem::autograd {

/// The layer above applies our ReLU's mask to the gradient and sums up our bias's as it writes that gradient; our own
/// backward pass is then spared two ways over it.
struct FusedLayer {
  Tensor mask;
  bool has_bias;     // whether the gradient of our bias is asked for
  Tensor gradient;   // what the layer above wrote, from its backward pass to ours
  Tensor grad_bias;  // [C], of that gradient

  /// The sum for our bias if `incoming` is that gradient, masked already: so it is where no other operation used our
  /// result. Forgets both.
  bool take(const Tensor& incoming, Tensor& sum) {
    const bool is_ours = gradient.defined() && gradient.storage() == incoming.storage();
    if (is_ours) sum = grad_bias;
    gradient = {};
    grad_bias = {};
    return is_ours;
  }
};

}  // namespace tandem::autograd
