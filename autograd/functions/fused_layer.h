// What fused convolutions, one right above the other, share. Internal to autograd/.
#pragma once

#include "autograd/node.h"
#include "core/tensor.h"
#include "kernels/conv/conv.h"

#include <memory>
#include <vector>

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
  bool take(const Tensor& incoming, Tensor& sum);
};

/// What the layer that made x shares, if that was a fused convolution and our kernels can do its work; else null.
std::shared_ptr<FusedLayer> layer_below(const Tensor& x, const Tensor& weight, const kernels::Conv2dOptions& options);

/// The gradients of x, weight and, unless `bias_sum` is that already, bias: what the context needs. `mask` undefined:
/// grad_y is masked.
std::vector<Tensor> fused_gradients(const BackwardContext& context, const Tensor& x, const Tensor& weight,
                                    const kernels::Conv2dOptions& options, const Tensor& mask, const Tensor& grad_y,
                                    const Tensor& bias_sum, FusedLayer* below);

}  // namespace tandem::autograd
