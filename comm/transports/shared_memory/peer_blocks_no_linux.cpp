// Systems where processes see no blocks of each other.
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tandem/core/error.h"

namespace tandem::comm {

PeerBlocks::PeerBlocks(const std::vector<std::string>& /*handles*/, int /*rank*/) {}
PeerBlocks::~PeerBlocks() = default;
std::byte* PeerBlocks::view(int rank, std::uint64_t /*layout*/, const CpuAllocator::BlockInFile& /*block*/,
                            std::int64_t /*offset*/) {
  fail("blocks of rank {}: this program can map them on Linux only", rank);
}

}  // namespace tandem::comm
