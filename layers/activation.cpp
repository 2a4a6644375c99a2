// Elementwise layers.
#include "tandem/layers/activation.h"

#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/dropout.h"

#include <atomic>

namespace tandem::layers {

namespace {

/// 0, 1, 2, ... over the process.
std::uint64_t next_dropout_seed() {
  static std::atomic<std::uint64_t> layers = 0;
  return layers++;
}

}  // namespace

Tensor ReLU::forward(const Tensor& input) { return autograd::relu(input); }
Tensor GELU::forward(const Tensor& input) { return autograd::gelu(input); }
Tensor SiLU::forward(const Tensor& input) { return autograd::silu(input); }
Tensor Tanh::forward(const Tensor& input) { return autograd::tanh(input); }
Tensor Sigmoid::forward(const Tensor& input) { return autograd::sigmoid(input); }
Tensor LeakyReLU::forward(const Tensor& input) { return autograd::leaky_relu(input, negative_slope_); }
Tensor Hardswish::forward(const Tensor& input) { return autograd::hardswish(input); }
Tensor Scale::forward(const Tensor& input) { return autograd::scale(input, factor_); }

Dropout::Dropout(double p) : p_(p), own_state_(std::make_shared<RandomState>(next_dropout_seed())) {
  require(p >= 0.0 && p < 1.0, "Dropout: p must be in [0, 1), got {}", p);
}

Tensor Dropout::forward(const Tensor& input) {
  if (!training() || p_ == 0.0) return input;
  return autograd::dropout(input, p_, state_->next_key(layer_));
}

bool Dropout::take_random_state(const std::shared_ptr<RandomState>& state, std::uint32_t layer) {
  state_ = state != nullptr ? state : own_state_;
  layer_ = layer;
  return true;
}

}  // namespace tandem::layers
