// How the chunks of a schedule travel.
#pragma once

#include <cstdint>

namespace tandem::comm {

struct SegmentOptions {
  /// Chunks travel in segments of at most this many bytes, so that one segment is combined while the next is on its
  /// way.
  std::int64_t segment_bytes = 128 * 1024;
  /// Segments that may be on their way at once to a rank, and from it.
  std::int64_t depth = 4;
};

}  // namespace tandem::comm
