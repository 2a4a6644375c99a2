// The choice of implementations for a whole program, before it starts to compute.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm_impl.h"

#include <string>

namespace tandem::kernels {

struct Implementations {
  ConvImpl conv = ConvImpl::automatic;
  GemmImpl gemm = GemmImpl::automatic;
};

/// Throws Error where one of them cannot run on `device` in this process, whatever the sizes: the text names the option
/// (--conv-impl, --gemm-impl), the reason and what to choose.
void check_implementations(const Implementations& chosen, Device device);

/// What an automatic choice does without on a GPU, and why, in one line; empty if nothing is missing, on the CPU and on
/// simulated GPUs.
std::string missing_libraries(const Implementations& chosen, Device device);

}  // namespace tandem::kernels
