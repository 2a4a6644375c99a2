// What failed calls of NCCL say.
#include "tandem/comm/backends/nccl/nccl_functions.h"

#include <fmt/format.h>

namespace tandem::comm {

void NcclFunctions::throw_if_failed(ncclResult_t result, ncclComm_t communicator, const char* call,
                                    const SourceLine& where) const {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const char* const last = GetLastError(communicator);
  const std::string_view detail = last != nullptr ? last : "";
  fail_call({.library = "NCCL",
             .error = fmt::format("{}{}{}", GetErrorString(result), detail.empty() ? "" : ": ", detail),
             .call = call,
             .where = where,
             .more = "NCCL_DEBUG=WARN shows more"});
}

}  // namespace tandem::comm
