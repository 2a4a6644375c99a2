// Ranks that tell each other whether something failed.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <fmt/format.h>

#include <string>

namespace tandem::comm {

/// "rank 1: <text>" of the first rank whose `mine` is not empty, or "": the same on all ranks. Collective.
inline std::string first_fault(Backend& backend, const std::string& mine) {
  const auto faults = backend.all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < faults.size(); ++rank)
    if (!faults[rank].empty()) return fmt::format("rank {}: {}", rank, faults[rank]);
  return "";
}

}  // namespace tandem::comm
