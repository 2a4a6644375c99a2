// The implementations of nll_loss.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/loss/nll_loss.h"

namespace tandem::kernels {

/// On the CPU there is no other: it reads a number per row, and writes zeros.
namespace reference {
decltype(kernels::nll_loss_forward) nll_loss_forward;
decltype(kernels::nll_loss_backward) nll_loss_backward;
}  // namespace reference

/// f32, f16 and bf16.
namespace cuda {
decltype(kernels::nll_loss_forward) nll_loss_forward;
decltype(kernels::nll_loss_backward) nll_loss_backward;
}  // namespace cuda

}  // namespace tandem::kernels
