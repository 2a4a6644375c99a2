// The implementations of least_confident.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/loss/least_confident.h"

namespace tandem::kernels {

/// On the CPU there is no other: it computes an exponential per element, and sorts.
namespace reference {
decltype(kernels::least_confident) least_confident;
}  // namespace reference

/// f32, f16 and bf16 logits; two launches.
namespace cuda {
decltype(kernels::least_confident) least_confident;
}  // namespace cuda

}  // namespace tandem::kernels
