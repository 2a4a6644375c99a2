// What a fused convolution leaves for the one right above it. Internal to autograd/.
#pragma once

#include "tandem/autograd/record.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/plan.h"

#include <memory>
#include <vector>

namespace tandem::autograd {

/// The layer above applies our ReLU's mask to the gradient and sums up our bias's as it writes that gradient; our own
/// backward pass is then spared two ways over it.
struct ConvProducer : Producer {
  ConvProducer(const Tensor& own_mask, const Tensor& own_bias) : mask(own_mask), bias(own_bias) {}

  Tensor mask;
  Tensor bias;       // undefined if there is none
  Tensor gradient;   // what the layer above wrote, from its backward pass to ours
  Tensor grad_bias;  // [C], of that gradient

  /// The sum for our bias if `incoming` is that gradient, masked already: so it is where no other operation used our
  /// result. Forgets both.
  bool consume_sum(const Tensor& incoming, Tensor& sum);
};

/// What the layer that made x shares, if that was a fused convolution and our kernels can do its work; else null.
std::shared_ptr<ConvProducer> layer_below(const kernels::ConvPlan& plan, const Tensor& x, const Tensor& weight);

/// The gradients of x, weight and, unless `bias_sum` is that already, bias: what the context needs. `mask` undefined:
/// grad_y is masked.
std::vector<Tensor> fused_gradients(const BackwardContext& context, const kernels::ConvPlan& plan, const Tensor& x,
                                    const Tensor& weight, const Tensor& mask, const Tensor& grad_y,
                                    const Tensor& bias_sum, ConvProducer* below);

}  // namespace tandem::autograd
