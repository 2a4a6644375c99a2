// Layers that leave parts out at random while training.
#include "tandem/layers/dropout.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/dropout.h"
#include "tandem/core/describe.h"

#include <atomic>

namespace tandem::layers {

namespace {

/// 0, 1, 2, ... over the process.
std::uint64_t next_seed() {
  static std::atomic<std::uint64_t> layers = 0;
  return layers++;
}

}  // namespace

RandomLayer::RandomLayer(std::string_view name, double p)
    : p_(p), own_state_(std::make_shared<RandomState>(next_seed())) {
  require(p >= 0.0 && p < 1.0, "{}: p must be in [0, 1), got {}", name, p);
}

Tensor RandomLayer::forward(const Tensor& input) {
  if (!training() || p_ == 0.0) return input;
  return apply(input, state_->next_draw(layer_, input.device()));
}

bool RandomLayer::take_random_state(const std::shared_ptr<RandomState>& state, std::uint32_t layer) {
  state_ = state != nullptr ? state : own_state_;
  layer_ = layer;
  return true;
}

Tensor Dropout::apply(const Tensor& input, const RandomDraw& draw) {
  return autograd::dropout(input, p(), draw.key, draw.step);
}

Tensor DropPath::apply(const Tensor& input, const RandomDraw& draw) {
  require(input.rank() >= 1, "DropPath: needs a first dimension of samples, got {}", tandem::describe(input));
  Shape one_each = input.shape();
  for (int dim = 1; dim < input.rank(); ++dim) one_each[dim] = 1;
  const Tensor ones = Tensor::full(one_each, 1.0, input.options(Layout::row_major));
  const Tensor kept = autograd::dropout(ones, p(), draw.key, draw.step);
  return autograd::mul(input, kept);
}

}  // namespace tandem::layers
