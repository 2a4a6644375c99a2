// The text of CUDA errors.
#include "tandem/core/cuda/check.h"

#include "tandem/core/failed_call.h"

#include <fmt/format.h>

namespace tandem::cuda {

namespace {

/// True for errors that a kernel raised earlier: the call that reports them is not to blame.
bool comes_from_a_kernel(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

}  // namespace

void throw_if_failed(cudaError_t status, const char* call, std::source_location where) {
  if (status == cudaSuccess) [[likely]]
    return;
  fail_call({.library = "CUDA",
             .error = fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)),
             .call = call,
             .where = where,
             .more = comes_from_a_kernel(status)
                         ? "a kernel that ran before is the cause: run with compute-sanitizer to find it"
                         : ""});
}

}  // namespace tandem::cuda
