// The implementations of batch_norm.h, which its dispatcher chooses from.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/norm/batch_norm.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::batch_norm_forward_train) batch_norm_forward_train;
decltype(kernels::batch_norm_forward_eval) batch_norm_forward_eval;
decltype(kernels::batch_norm_backward) batch_norm_backward;
}  // namespace reference

/// f32, f16 and bf16 images dense in channels_last (matrices: row-major), computed in float. Training reads x twice
/// forward and twice backward. Results do not depend on the number of threads.
namespace cpu {
bool supports_batch_norm(const Tensor& x, const Tensor& y);
decltype(kernels::batch_norm_forward_train) batch_norm_forward_train;
decltype(kernels::batch_norm_forward_eval) batch_norm_forward_eval;
decltype(kernels::batch_norm_backward) batch_norm_backward;
}  // namespace cpu

/// f32, f16 and bf16; moments in f32 around a value of the batch, joined in f64. Tensors that are not dense in
/// channels_last are copied first.
namespace cuda {
void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std, const Tensor& moments);
decltype(kernels::batch_norm_forward_eval) batch_norm_forward_eval;
decltype(kernels::batch_norm_backward) batch_norm_backward;
}  // namespace cuda

}  // namespace tandem::kernels
