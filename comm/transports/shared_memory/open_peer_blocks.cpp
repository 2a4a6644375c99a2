// Ranks that agree to map each other's blocks.
#include "tandem/comm/transports/shared_memory/first_fault.h"
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tandem/core/error.h"

#include <utility>

namespace tandem::comm {

OpenedBlocks open_peer_blocks(Backend& backend, std::string obstacle) {
  if (obstacle.empty()) obstacle = cpu_allocator().share_blocks();
  obstacle = first_fault(backend, obstacle);
  if (!obstacle.empty()) return {nullptr, std::move(obstacle)};
  const auto handles = backend.all_gather_bytes(handle_of_file(cpu_allocator().shared_file()));
  std::unique_ptr<PeerBlocks> blocks;
  std::string fault;
  try {
    blocks = std::make_unique<PeerBlocks>(handles, backend.place().rank);
  } catch (const Error& error) {
    fault = error.what();
  }
  obstacle = first_fault(backend, fault);
  if (!obstacle.empty()) blocks.reset();
  return {std::move(blocks), std::move(obstacle)};
}

}  // namespace tandem::comm
