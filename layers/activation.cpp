// Elementwise layers.
#include "tandem/layers/activation.h"

#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"

#include <cmath>

namespace tandem::layers {

LeakyReLU::LeakyReLU(double negative_slope) : negative_slope_(negative_slope) {
  require(std::isfinite(negative_slope), "LeakyReLU: negative_slope must be a finite number, got {}", negative_slope);
}

CELU::CELU(double alpha) : alpha_(alpha) {
  require(std::isfinite(alpha) && alpha > 0.0, "CELU: alpha must be a finite number above 0, got {}", alpha);
}

Scale::Scale(double factor) : factor_(factor) {
  require(std::isfinite(factor), "Scale: the factor must be a finite number, got {}", factor);
}

Tensor ReLU::forward(const Tensor& input) { return autograd::relu(input); }
Tensor GELU::forward(const Tensor& input) { return autograd::gelu(input); }
Tensor SiLU::forward(const Tensor& input) { return autograd::silu(input); }
Tensor Tanh::forward(const Tensor& input) { return autograd::tanh(input); }
Tensor Sigmoid::forward(const Tensor& input) { return autograd::sigmoid(input); }
Tensor LeakyReLU::forward(const Tensor& input) { return autograd::leaky_relu(input, negative_slope_); }
Tensor CELU::forward(const Tensor& input) { return autograd::celu(input, alpha_); }
Tensor Hardswish::forward(const Tensor& input) { return autograd::hardswish(input); }
Tensor Scale::forward(const Tensor& input) { return autograd::scale(input, factor_); }

}  // namespace tandem::layers
