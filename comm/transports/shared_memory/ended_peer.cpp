#include "tandem/comm/transports/shared_memory/ended_peer.h"

#include <fmt/format.h>

namespace tandem::comm {

std::string EndedPeer::text_of(int ended) const {
  return fmt::format("rank {} (process {}) has ended, and rank {} waits for it", ended, peers_.process(ended), rank_);
}

}  // namespace tandem::comm
