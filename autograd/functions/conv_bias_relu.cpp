// Differentiable convolution, bias and ReLU in one.
#include "autograd/functions/conv_bias_relu.h"

#include "autograd/functions/fused_layer.h"
#include "autograd/node.h"
#include "autograd/precision.h"
#include "autograd/record.h"

namespace tandem::autograd {

namespace {

constexpr Layout kLayout = Layout::channels_last;

/// What the layer that made x shares, if that was a conv_bias_relu and our kernels can do its work.
std::shared_ptr<FusedLayer> layer_below(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  const auto& meta = x.autograd_meta();
  if (!meta || !meta->made_by.node) return nullptr;
  const std::shared_ptr<FusedLayer> below = meta->made_by.node->fused_layer.lock();
  return below && kernels::conv_backward_fuses_layer_below(x, weight, options) ? below : nullptr;
}

}  // namespace

Tensor conv_bias_relu(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  const Tensor x = input_for(OpKind::convolution, input, weight);
  const Shape y_shape = kernels::conv2d_output_shape(x.shape(), weight.shape(), options);
  const Tensor images = x.contiguous(kLayout), filters = weight.contiguous(kLayout);
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  const bool recorded = should_record({x, weight, bias});
  Tensor mask;
  if (recorded) mask = Tensor::empty(kernels::conv_mask_shape(y_shape), {.dtype = DType::u8, .device = x.device()});
  kernels::conv_bias_relu_forward(images, filters, bias.defined() ? bias.contiguous() : bias, options, y, mask);
  if (!recorded) return y;

  const auto own = std::make_shared<FusedLayer>(mask, bias.defined() && requires_grad(bias));
  // The fused backward takes both; neither is a copy where it is stored the way the kernels want.
  Tensor result = record(
      "conv_bias_relu", {x, weight, bias}, y,
      [options, own, below = layer_below(x, filters, options), saved_x = SavedTensor(images),
       saved_weight = SavedTensor(filters)](const BackwardContext& context) {
        Tensor bias_sum;
        const bool masked = own->take(context.grad_output(), bias_sum);
        const Tensor grad_y = context.grad_output().contiguous(kLayout);
        const Tensor from_x = saved_x.get(), from_weight = saved_weight.get();
        std::vector<Tensor> gradients(3);
        if (context.needs(0)) gradients[0] = Tensor::empty(from_x.shape(), grad_y.options(kLayout));
        if (context.needs(1)) gradients[1] = Tensor::empty(from_weight.shape(), grad_y.options(kLayout));
        if (context.needs(2) && !bias_sum.defined()) gradients[2] = Tensor::empty({grad_y.size(1)}, grad_y.options());
        kernels::LayerBelow for_below;
        if (below) {
          for_below.mask = below->mask;
          if (below->has_bias) for_below.grad_bias = Tensor::empty({from_x.size(1)}, grad_y.options());
        }
        kernels::conv_bias_relu_backward(from_x, from_weight, masked ? Tensor() : own->mask, options, grad_y,
                                         gradients[0], gradients[1], gradients[2], for_below);
        if (below) {
          below->gradient = gradients[0];
          below->grad_bias = for_below.grad_bias;
        }
        if (bias_sum.defined()) gradients[2] = bias_sum;
        return gradients;
      });
  result.autograd_meta()->made_by.node->fused_layer = own;
  return result;
}

}  // namespace tandem::autograd
