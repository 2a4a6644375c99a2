// What fused convolutions, one right above the other, do for each other.
#include "tandem/autograd/functions/conv_producer.h"

namespace tandem::autograd {

bool ConvProducer::consume_sum(const Tensor& incoming, Tensor& sum) {
  const bool is_ours = gradient.defined() && gradient.storage() == incoming.storage();
  if (is_ours) sum = grad_bias;
  gradient = {};
  grad_bias = {};
  return is_ours;
}

std::shared_ptr<ConvProducer> layer_below(const kernels::ConvPlan& plan, const Tensor& x, const Tensor& weight) {
  const auto below = std::dynamic_pointer_cast<ConvProducer>(producer_of(x));
  return below && kernels::conv_fuses_layer_below(plan, x, weight) ? below : nullptr;
}

std::vector<Tensor> fused_gradients(const BackwardContext& context, const kernels::ConvPlan& plan, const Tensor& x,
                                    const Tensor& weight, const Tensor& mask, const Tensor& grad_y,
                                    const Tensor& bias_sum, ConvProducer* below) {
  std::vector<Tensor> gradients(3);
  if (context.needs(0)) gradients[0] = Tensor::empty(x.shape(), grad_y.options(Layout::channels_last));
  gradients[1] = context.new_gradient(1, Layout::channels_last);
  if (!bias_sum.defined()) gradients[2] = context.new_gradient(2);
  kernels::LayerBelow for_below;
  if (below != nullptr) {
    for_below.mask = below->mask;
    for_below.grad_bias = Out(context.new_gradient_of(below->bias));
  }
  kernels::conv_bias_relu_backward(plan, {.x = x, .w = weight, .mask = mask, .grad_y = grad_y},
                                   {.x = Out(gradients[0]), .w = Out(gradients[1]), .bias = Out(gradients[2])},
                                   for_below);
  if (below != nullptr) {
    below->gradient = gradients[0];
    below->grad_bias = for_below.grad_bias;
  }
  if (bias_sum.defined()) gradients[2] = bias_sum;
  return gradients;
}

}  // namespace tandem::autograd
