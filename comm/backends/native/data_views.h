// Where ranks of one host find each other's data.
#pragma once

#include "tandem/comm/backends/native/shared_parts.h"
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tandem/comm/transports/shared_memory/window.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace tandem::comm {

/// What a rank tells others about the place of its data, and what it makes of what they tell.
class DataViews {
 public:
  /// `blocks`: null where ranks cannot map each other's. `uses_addresses`: ranks are threads of one process.
  DataViews(int rank, std::unique_ptr<PeerBlocks> blocks, bool uses_addresses)
      : rank_(rank), parts_(rank), blocks_(std::move(blocks)), uses_addresses_(uses_addresses) {}

  SharedParts& parts() { return parts_; }
  /// Of this rank's data. `block` is written where the place is in one.
  DataPlace place_of(const void* data, std::int64_t bytes, CpuAllocator::BlockInFile& block);
  /// The data of a rank, this one or another; null where they are hidden. They stay until view() has given two more
  /// of that rank. Throws Error where the system maps no more.
  std::byte* view(int rank, const DataPlace& place, const CpuAllocator::BlockInFile& block) const;

 private:
  int rank_;
  SharedParts parts_;
  std::unique_ptr<PeerBlocks> blocks_;
  bool uses_addresses_;
};

}  // namespace tandem::comm
