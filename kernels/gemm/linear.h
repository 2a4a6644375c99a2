// Fully connected layer: y = x w^T + bias, optionally followed by ReLU, and its gradients.
#pragma once

#include "core/tensor.h"
#include "kernels/gemm/gemm_impl.h"

namespace tandem::kernels {

/// y[M,O] = x[M,I] w[O,I]^T + bias[O], then max(y, 0) if `relu`. Dense, one floating dtype and device (f64
/// on the CPU only); bias may be undefined. Throws Error where that does not hold, and where `impl` cannot run here.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y,
                    GemmImpl impl = GemmImpl::automatic);

/// The gradients that are defined: grad_x[M,I], grad_weight[O,I], grad_bias[O]; they are overwritten. After a forward
/// with ReLU, give its output as `y`: grad_y then counts only where y > 0. Without ReLU, y is undefined.
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias, GemmImpl impl = GemmImpl::automatic);

namespace reference {
/// Plain loops, sums in double, rounded once.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y);
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the packed product of gemm.h, in float; half types are rounded once.
bool supports_linear(const Tensor& x);
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y);
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias);
}  // namespace cpu

namespace cuda {
// f32, f16 and bf16, accumulated in float.

/// By cuBLAS or by our tiles.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y,
                    GemmImpl impl);
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias, GemmImpl impl);

namespace tile {
/// On the product of product.cuh.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Tensor& y);
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x,
                     const Tensor& grad_weight, const Tensor& grad_bias);
}  // namespace tile
}  // namespace cuda
}  // namespace tandem::kernels
