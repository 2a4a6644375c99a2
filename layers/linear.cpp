// Fully connected layer.
#include "layers/linear.h"

#include "autograd/functions/linear.h"

namespace tandem::layers {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, Initializer& initializer, LinearOptions options)
    : options_(options) {
  require(in_features > 0 && out_features > 0, "Linear: {} to {} features: both must be positive", in_features,
          out_features);
  weight_ = initializer.kaiming_uniform({out_features, in_features}, in_features);
  if (options.bias == Bias::present) bias_ = initializer.kaiming_uniform({out_features}, in_features);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor Linear::forward(const Tensor& input) {
  return options_.relu ? autograd::linear_relu(input, weight_, bias_, options_.impl)
                       : autograd::linear(input, weight_, bias_, options_.impl);
}

std::string Linear::describe() const {
  return fmt::format("{}({}, {}{})", options_.relu ? "LinearReLU" : "Linear", weight_.size(1), weight_.size(0),
                     bias_.defined() ? "" : ", no bias");
}

}  // namespace tandem::layers
