// Turns a failed call of the CUDA runtime into an Error that says what failed, where and why.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace tandem::cuda {

/// Throws Error with the runtime's name and words for `status`, the `call` and the place of it, unless it is
/// cudaSuccess. Errors of kernels show at whichever call comes next: the text says so for those.
void throw_if_failed(cudaError_t status, const char* call, std::source_location where);

}  // namespace tandem::cuda

/// Evaluates a call of the CUDA runtime and throws Error where it fails. A macro only to have the call's text.
#define TANDEM_CHECK_CUDA(call) ::tandem::cuda::throw_if_failed((call), #call, std::source_location::current())
