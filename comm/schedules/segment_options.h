// How the chunks of a schedule travel.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::comm {

struct SegmentOptions {
  /// Chunks travel in segments of at most this many bytes, so that one segment is combined while the next is on its
  /// way.
  std::int64_t segment_bytes = 128 * 1024;
  /// Segments of `segment_bytes` that may be on their way at once to a rank, and from it. Where chunks are shorter, so
  /// many more messages may be: those of as many bytes.
  std::int64_t depth = 4;

  /// Messages of up to `longest` bytes that may be on their way at once to a rank; 1 at least.
  std::int64_t messages_at_once(std::int64_t longest) const {
    const std::int64_t shorter = longest > 0 ? segment_bytes / longest : 1;
    return std::max<std::int64_t>(1, depth) * std::max<std::int64_t>(1, shorter);
  }
};

}  // namespace tandem::comm
