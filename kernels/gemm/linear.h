// Fully connected layer: y = x w^T + bias, optionally followed by ReLU, and its gradients.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/gemm/gemm_impl.h"

namespace tandem::kernels {

/// y[M,O] = x[M,I] w[O,I]^T + bias[O], then max(y, 0) if `relu`. Dense, one floating dtype and device (f64
/// on the CPU only); bias may be undefined. Throws Error where that does not hold, and where `impl` cannot run here.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y,
                    GemmImpl impl = GemmImpl::automatic);

/// The gradients that are defined: grad_x[M,I], grad_weight[O,I], grad_bias[O]; they are overwritten. After a forward
/// with ReLU, give its output as `y`: grad_y then does not count where y <= 0 (where y is NaN it does, as in
/// relu_backward). Without ReLU, y is undefined. On the CPU the gradient of bias is added up in runs of rows, and these
/// in f64.
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias, GemmImpl impl = GemmImpl::automatic);

}  // namespace tandem::kernels
