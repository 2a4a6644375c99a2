// Fully connected layer.
#include "tandem/layers/linear.h"

#include "tandem/autograd/functions/linear.h"

namespace tandem::layers {

Linear::Linear(const Options& options, Initializer& initializer) : options_(options) {
  require(options.in > 0 && options.out > 0, "Linear: {} to {} features: both must be positive", options.in,
          options.out);
  weight_ = initializer.kaiming_uniform({options.out, options.in}, options.in);
  if (options.bias) bias_ = initializer.kaiming_uniform({options.out}, options.in);
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
