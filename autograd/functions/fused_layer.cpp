// What fused convolutions, one right above the other, do for each other.
#include "autograd/functions/fused_layer.h"

namespace tandem::autograd {

bool FusedLayer::take(const Tensor& incoming, Tensor& sum) {
  const bool is_ours = gradient.defined() && gradient.storage() == incoming.storage();
  if (is_ours) sum = grad_bias;
  gradient = {};
  grad_bias = {};
  return is_ours;
}

std::shared_ptr<FusedLayer> layer_below(const Tensor& x, const Tensor& weight, const kernels::Conv2dOptions& options) {
  const Meta* const meta = find_meta(x);
  if (meta == nullptr || !meta->made_by.node) return nullptr;
  const std::shared_ptr<FusedLayer> below = meta->made_by.node->fused_layer.lock();
  return below && kernels::conv_backward_fuses_layer_below(x, weight, options) ? below : nullptr;
}

std::vector<Tensor> fused_gradients(const BackwardContext& context, const Tensor& x, const Tensor& weight,
                                    const kernels::Conv2dOptions& options, const Tensor& mask, const Tensor& grad_y,
                                    const Tensor& bias_sum, FusedLayer* below) {
  std::vector<Tensor> gradients(3);
  if (context.needs(0)) gradients[0] = Tensor::empty(x.shape(), grad_y.options(Layout::channels_last));
  if (context.needs(1)) gradients[1] = Tensor::empty(weight.shape(), grad_y.options(Layout::channels_last));
  if (context.needs(2) && !bias_sum.defined()) gradients[2] = Tensor::empty({grad_y.size(1)}, grad_y.options());
  kernels::LayerBelow for_below;
  if (below != nullptr) {
    for_below.mask = below->mask;
    if (below->has_bias) for_below.grad_bias = Tensor::empty({x.size(1)}, grad_y.options());
  }
  kernels::conv_bias_relu_backward(x, weight, mask, options, grad_y, gradients[0], gradients[1], gradients[2],
                                   for_below);
  if (below != nullptr) {
    below->gradient = gradients[0];
    below->grad_bias = for_below.grad_bias;
  }
  if (bias_sum.defined()) gradients[2] = bias_sum;
  return gradients;
}

}  // namespace tandem::autograd
