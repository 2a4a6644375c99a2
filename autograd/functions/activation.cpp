// Differentiable activations.
#include "tandem/autograd/functions/activation.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/unary.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/silu.h"

#include <cmath>

namespace tandem::autograd {

namespace {

using Forward = void (*)(const Tensor& x, const Out& y);
using Backward = void (*)(const Tensor& saved, const Tensor& grad_y, const Out& grad_x);

enum class Keep { input, output };

Tensor activation(const char* name, const Tensor& x, Forward forward, Backward backward, Keep keep) {
  require_floating(name, x);
  const Tensor y = empty_like(x);
  unrecorded([&] { forward(x, Out(y)); });
  if (!should_record({x})) return y;
  return record(name, {x}, y,
                [backward, saved = SavedTensor(keep == Keep::input ? x : y)](const BackwardContext& context) {
                  const Tensor kept = saved.get();
                  const Tensor grad_x = empty_like(kept);
                  backward(kept, context.grad_output(), Out(grad_x));
                  return std::vector<Tensor>{grad_x};
                });
}

/// A number in the type that x is computed in.
double in_compute_type(const Tensor& x, double number) {
  return x.dtype() == DType::f64 ? number : static_cast<double>(static_cast<float>(number));
}

}  // namespace

Tensor relu(const Tensor& x) {
  return activation("relu", x, kernels::relu_forward, kernels::relu_backward, Keep::output);
}

Tensor gelu(const Tensor& x) {
  return activation("gelu", x, kernels::gelu_forward, kernels::gelu_backward, Keep::input);
}

Tensor silu(const Tensor& x) {
  return activation("silu", x, kernels::silu_forward, kernels::silu_backward, Keep::input);
}

Tensor tanh(const Tensor& x) { return unary("tanh", kernels::Unary::tanh, x); }

Tensor sigmoid(const Tensor& x) { return unary("sigmoid", kernels::Unary::sigmoid, x); }

Tensor softplus(const Tensor& x, double beta) {
  require_floating("softplus", x);
  const double rounded = in_compute_type(x, beta);
  require(std::isfinite(rounded) && rounded != 0.0,
          "softplus: beta must be a finite number other than 0 in the type that {} is computed in, got {}", x, beta);
  return unary("softplus", kernels::Unary::softplus, x, {beta});
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return unary("leaky_relu", kernels::Unary::leaky_relu, x, {negative_slope});
}

Tensor celu(const Tensor& x, double alpha) {
  require_floating("celu", x);
  const double rounded = in_compute_type(x, alpha);
  require(std::isfinite(rounded) && rounded > 0.0,
          "celu: alpha must be a finite number above 0 in the type that {} is computed in, got {}", x, alpha);
  return unary("celu", kernels::Unary::celu, x, {alpha});
}

Tensor hardswish(const Tensor& x) { return unary("hardswish", kernels::Unary::hardswish, x); }

}  // namespace tandem::autograd
