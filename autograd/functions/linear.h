// Differentiable fully connected layer, plain or with ReLU.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/gemm/gemm_impl.h"

namespace tandem::autograd {

using kernels::GemmImpl;

/// y = x weight^T + bias, [..., O]. x: [..., I], weight: [O, I], bias: [O] or undefined, one floating dtype, any
/// strides. x in f32 is rounded to a half weight's dtype, and half x widened for an f32 weight (precision.h).
/// Example:
///     const Tensor x = Tensor::zeros({8, 256}), weight = Tensor::zeros({10, 256}), bias = Tensor::full({10}, 0.5);
///     const Tensor logits = linear(x, weight, bias);                            // [8, 10]
///     const Tensor of_words = linear(Tensor::zeros({8, 20, 256}), weight, bias);  // [8, 20, 10]
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, GemmImpl impl = GemmImpl::automatic);

/// max(linear(x, weight, bias), 0) in one; backward reads the signs off the output.
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, GemmImpl impl = GemmImpl::automatic);

}  // namespace tandem::autograd
