// The choice of implementations for a whole program, before it starts to compute.
#pragma once

#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/gemm/gemm_impl.h"

#include <span>
#include <string>
#include <string_view>

namespace tandem::kernels {

struct Implementations {
  ConvImpl conv = ConvImpl::automatic;
  GemmImpl gemm = GemmImpl::automatic;
};

/// What parse_conv_impl() and parse_gemm_impl() know, "auto" first.
std::span<const std::string_view> conv_impl_names();
std::span<const std::string_view> gemm_impl_names();

/// Throws Error where one of them cannot run on `device` in this process, whatever the sizes: the text names the option
/// (conv_impl, gemm_impl), the reason and what to choose.
void check_implementations(const Implementations& chosen, Device device);

/// "this build has no oneDNN (libdnnl-dev)", or empty where it is there.
std::string_view missing_onednn();

/// What an automatic choice does without on a GPU, and why, in one line; empty if nothing is missing, on the CPU and on
/// simulated GPUs.
std::string missing_libraries(const Implementations& chosen, Device device);

}  // namespace tandem::kernels
