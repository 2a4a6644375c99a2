// The implementations of avg_pool2d.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/pool/avg_pool2d.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::avg_pool2d_forward) avg_pool2d_forward;
decltype(kernels::avg_pool2d_backward) avg_pool2d_backward;
}  // namespace reference

/// f32, f16 and bf16, computed in float; all tensors dense in channels_last.
namespace cpu {
bool supports_avg_pool2d(const Tensor& x, const Tensor& y);
decltype(kernels::avg_pool2d_forward) avg_pool2d_forward;
decltype(kernels::avg_pool2d_backward) avg_pool2d_backward;
}  // namespace cpu

/// f32, f16 and bf16; accumulated in f32. Tensors that are not dense in channels_last are copied first.
namespace cuda {
decltype(kernels::avg_pool2d_forward) avg_pool2d_forward;
decltype(kernels::avg_pool2d_backward) avg_pool2d_backward;
}  // namespace cuda

}  // namespace tandem::kernels
