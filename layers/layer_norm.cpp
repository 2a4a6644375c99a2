// Layer normalisation.
#include "tandem/layers/layer_norm.h"

#include "tandem/autograd/functions/layer_norm.h"
#include "tandem/core/describe.h"
#include "tandem/layers/initializer.h"

namespace tandem::layers {

LayerNorm::LayerNorm(const Options& options) : options_(options) {
  const Shape& shape = options.normalized_shape;
  require(!shape.empty() && element_count(shape) > 0,
          "LayerNorm: normalized_shape must be positive sizes, the last ones of the input, got {}", shape);
  require(options.eps >= 0.0, "LayerNorm: eps must not be negative, got {}", options.eps);
  if (options.elementwise_affine) {
    weight_ = Initializer::constant(shape, 1.0);
    if (options.bias) bias_ = Initializer::constant(shape, 0.0);
  }
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor LayerNorm::forward(const Tensor& input) {
  return autograd::layer_norm(input, options_.normalized_shape, weight_, bias_, options_.eps);
}

std::string LayerNorm::describe() const { return fmt::format("LayerNorm({})", to_string(options_.normalized_shape)); }

}  // namespace tandem::layers
