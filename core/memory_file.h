// Files without a name, whose memory other processes of the host can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

/// A part of a file, in bytes.
struct FileRange {
  std::int64_t begin = 0, bytes = 0;

  bool operator==(const FileRange&) const = default;
};

/// A new one (memfd_create), empty, that holds no program. `name`: what /proc/PID/fd shows. Below 0, with errno, where
/// the system makes none.
int make_memory_file(const char* name);

/// Maps parts of such a file one behind another, to be read and written, and seen by all that have them mapped. All
/// numbers are multiples of 4096; where there are several parts, of 2 MiB. Pages of 2 MiB of the file are such pages
/// there. Null, with errno, where the system refuses.
std::byte* map_file_ranges(int file, std::span<const FileRange> ranges) noexcept;

}  // namespace tandem
