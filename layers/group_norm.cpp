// Group normalisation.
#include "tandem/layers/group_norm.h"

#include "tandem/autograd/functions/group_norm.h"
#include "tandem/core/describe.h"
#include "tandem/layers/initializer.h"

namespace tandem::layers {

GroupNorm::GroupNorm(const Options& options) : options_(options) {
  require(options.groups > 0 && options.channels > 0 && options.channels % options.groups == 0,
          "GroupNorm: {} channels in {} groups: both must be positive, and groups divide channels", options.channels,
          options.groups);
  require(options.eps >= 0.0, "GroupNorm: eps must not be negative, got {}", options.eps);
  if (options.affine) {
    weight_ = Initializer::constant({options.channels}, 1.0);
    bias_ = Initializer::constant({options.channels}, 0.0);
  }
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor GroupNorm::forward(const Tensor& input) {
  require(input.rank() >= 2 && input.size(1) == options_.channels, "{}: needs an input [N, {}, ...], got {}",
          describe(), options_.channels, input);
  return autograd::group_norm(input, options_.groups, weight_, bias_, options_.eps);
}

std::string GroupNorm::describe() const { return fmt::format("GroupNorm({}, {})", options_.groups, options_.channels); }

}  // namespace tandem::layers
