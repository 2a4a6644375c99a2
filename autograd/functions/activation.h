// Differentiable activations.
// Example:
//     const Tensor y = relu(Tensor::from<float>({-1, 0, 2}, {3}));
//     const std::vector<float> values = y.to_vector<float>();  // {0, 0, 2}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// max(x, 0). Keeps its output for backward, which the next layer keeps anyway. Floating x of any strides.
Tensor relu(const Tensor& x);

/// x Phi(x), the exact form with erf (arXiv:1606.08415). Keeps x.
Tensor gelu(const Tensor& x);

/// x / (1 + exp(-x)) (arXiv:1702.03118). Keeps x.
Tensor silu(const Tensor& x);

/// The hyperbolic tangent. Keeps its output.
Tensor tanh(const Tensor& x);

/// 1 / (1 + exp(-x)). Keeps its output.
Tensor sigmoid(const Tensor& x);

/// log(1 + exp(beta x)) / beta, a smooth max(x, 0), for all x (PyTorch goes over to x from beta x = 20 on, where the
/// two are one number in f32). f32 for half x (OpKind::exponential). On the CPU, results in f32 below exp(-87) / beta
/// are 0. Keeps x. Throws Error unless beta is a finite number other than 0, in f32 unless x is f64.
Tensor softplus(const Tensor& x, double beta = 1.0);

/// x where x > 0, else negative_slope * x. Keeps x.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);

/// x where x > 0, else alpha (exp(x / alpha) - 1): a max(x, 0) that is smooth at 0 (Barron, arXiv:1704.07483). Keeps x.
/// Throws Error unless alpha is a finite number above 0, in f32 unless x is f64.
/// Example:
///     const Tensor y = celu(Tensor::from<float>({-1, 0, 2}, {3}), 0.5);
///     const std::vector<float> values = y.to_vector<float>();  // {-0.432332, 0, 2}
Tensor celu(const Tensor& x, double alpha = 1.0);

/// x min(max(x + 3, 0), 6) / 6 (arXiv:1905.02244), with a gradient of 0 at -3 and 1 at 3, as in PyTorch 2.8 and later.
/// Keeps x.
Tensor hardswish(const Tensor& x);

}  // namespace tandem::autograd
