// The implementations of add_scores.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/loss/add_scores.h"

namespace tandem::kernels {

/// On the CPU there is no other: it reads each logit once.
namespace reference {
decltype(kernels::add_scores) add_scores;
}  // namespace reference

/// f32, f16 and bf16 logits; one launch.
namespace cuda {
decltype(kernels::add_scores) add_scores;
}  // namespace cuda

}  // namespace tandem::kernels
