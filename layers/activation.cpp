// Elementwise layers.
#include "tandem/layers/activation.h"

#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/dropout.h"

namespace tandem::layers {

Tensor ReLU::forward(const Tensor& input) { return autograd::relu(input); }
Tensor GELU::forward(const Tensor& input) { return autograd::gelu(input); }
Tensor SiLU::forward(const Tensor& input) { return autograd::silu(input); }
Tensor Scale::forward(const Tensor& input) { return autograd::scale(input, factor_); }

Dropout::Dropout(double p) : p_(p) { require(p >= 0.0 && p < 1.0, "Dropout: p must be in [0, 1), got {}", p); }

Tensor Dropout::forward(const Tensor& input) {
  if (!training() || p_ == 0.0) return input;
  require(state_ != nullptr,
          "Dropout: no random state to draw from; call set_random_state on the model before training");
  return autograd::dropout(input, p_, state_->next_key(layer_));
}

bool Dropout::take_random_state(const std::shared_ptr<RandomState>& state, std::uint32_t layer) {
  state_ = state;
  layer_ = layer;
  return true;
}

}  // namespace tandem::layers
