// How large data go through the memory of GPUs that ranks share.
#pragma once

#include <cstdint>

namespace tandem::comm {

struct DeviceSegments {
  std::int64_t bytes = std::int64_t{8} << 20;  ///< of a segment, of which a rank's GPU holds two
  /// All-reduces of so many bytes between more than two ranks: each rank adds up a part, and others take it; smaller
  /// ones are added up by every rank.
  std::int64_t parts_from_bytes = std::int64_t{256} << 10;
};

}  // namespace tandem::comm
