// The implementations of dropout.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/dropout/dropout.h"

namespace tandem::kernels {

/// The key's step is all of it.
namespace reference {
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y);
}  // namespace reference

/// f32, f16 and bf16, dense in channels_last (images) or row-major; the key as above.
namespace cpu {
bool supports_dropout(const Tensor& x, const Tensor& y);
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device, any strides: the mask of the other implementations, bit for bit.
decltype(kernels::dropout_forward) dropout_forward;
}  // namespace cuda

namespace detail {
/// Words whose upper 24 bits are below this are dropped.
std::uint32_t dropout_threshold(double p);
}  // namespace detail

}  // namespace tandem::kernels
