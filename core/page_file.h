// A file of blocks of the CPU's memory, which other processes of the host can map as well.
#pragma once

#include "tandem/core/memory_file.h"

#include <cstddef>
#include <cstdint>

namespace tandem {

/// No place in the file is used twice: whoever has mapped one sees what was there, or nothing any more. Memory is taken
/// when a place is first written, in pages of 2 MiB where it can be, and given back on demand. Only on Linux. Not
/// thread-safe.
class PageFile {
 public:
  /// How long the file is said to be, of which little is in use.
  static constexpr std::int64_t kBytes = std::int64_t{1} << 56;

  /// Where a part of the file is mapped, or nothing: start null.
  struct Mapped {
    std::byte* start = nullptr;
    FileRange range = {};
  };

  /// Throws Error where the system has no such files, would give them small pages, or limits memory in ways that they
  /// do not know.
  PageFile();
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  /// The file, of this process, for as long as this object is there.
  int descriptor() const { return file_; }

  /// New memory of zeros at a multiple of `alignment`, 4096 or 2 MiB, of which `bytes` is a multiple. Nothing where the
  /// machine has not so much, or the system refuses.
  Mapped map(std::int64_t bytes, std::int64_t alignment) noexcept;
  /// Gives memory back. Who reads there finds zeros.
  void give_back(FileRange range) noexcept;
  /// For a process made by fork(): what it writes at `start` is its own from now on. What its parent writes there it
  /// sees where it has written nothing within the same page. Ends the process where the system refuses: else it would
  /// write into its parent's data.
  void keep_from_parent(std::byte* start, FileRange range) const noexcept;

 private:
  int file_ = -1;
  std::int64_t end_ = 0;   // of what was in use
  std::int64_t most_ = 0;  // bytes at once
};

}  // namespace tandem
