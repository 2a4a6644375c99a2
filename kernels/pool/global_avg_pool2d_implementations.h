// The implementations of global_avg_pool2d.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/pool/global_avg_pool2d.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::global_avg_pool2d_forward) global_avg_pool2d_forward;
decltype(kernels::global_avg_pool2d_backward) global_avg_pool2d_backward;
}  // namespace reference

/// f32, f16 and bf16, summed up in float by parts, and these in double; all tensors dense in channels_last.
namespace cpu {
bool supports_global_avg_pool2d(const Tensor& x, const Tensor& y);
decltype(kernels::global_avg_pool2d_forward) global_avg_pool2d_forward;
decltype(kernels::global_avg_pool2d_backward) global_avg_pool2d_backward;
}  // namespace cpu

/// f32, f16 and bf16; accumulated in f32. Tensors that are not dense in channels_last are copied first.
namespace cuda {
decltype(kernels::global_avg_pool2d_forward) global_avg_pool2d_forward;
decltype(kernels::global_avg_pool2d_backward) global_avg_pool2d_backward;
}  // namespace cuda

}  // namespace tandem::kernels
