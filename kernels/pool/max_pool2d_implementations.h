// The implementations of max_pool2d.h, which its dispatcher chooses from.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/pool/max_pool2d.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::max_pool2d_forward) max_pool2d_forward;
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x);
}  // namespace reference

/// f32, f16 and bf16, computed in float; all tensors dense in channels_last, u8 indices.
namespace cpu {
bool supports_max_pool2d(const Tensor& x, const Tensor& y, const Tensor& indices);
decltype(kernels::max_pool2d_forward) max_pool2d_forward;
decltype(reference::max_pool2d_backward) max_pool2d_backward;
}  // namespace cpu

/// f32, f16 and bf16; accumulated in f32, sums in an order that depends on the sizes alone. Tensors that are not dense
/// in channels_last are copied first.
namespace cuda {
decltype(kernels::max_pool2d_forward) max_pool2d_forward;
decltype(kernels::max_pool2d_backward) max_pool2d_backward;
}  // namespace cuda

}  // namespace tandem::kernels
