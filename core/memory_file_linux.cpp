// By memfd_create and mmap.
#include "tandem/core/memory_file.h"

#include <sys/mman.h>

#include <cerrno>

namespace tandem {

namespace {

constexpr std::int64_t kLargePage = std::int64_t{2} << 20;

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

/// Addresses that nothing else is at, without memory, the first as far from a large page's begin as `begin` is; null
/// where there are none.
std::byte* reserve(std::int64_t begin, std::int64_t bytes) {
  constexpr std::int64_t kSpare = kLargePage;
  void* const mapped =
      mmap(nullptr, size(bytes + kSpare), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const auto misfit =
      static_cast<std::int64_t>((static_cast<std::uintptr_t>(begin) - reinterpret_cast<std::uintptr_t>(first)) %
                                static_cast<std::uintptr_t>(kLargePage));
  if (misfit > 0) munmap(first, size(misfit));
  munmap(first + misfit + bytes, size(kSpare - misfit));
  return first + misfit;
}

}  // namespace

/// Systems may allow no files that can hold a program. Older systems do not know the wish.
int make_memory_file(const char* name) {
#if defined(MFD_NOEXEC_SEAL)
  constexpr unsigned kNoProgram = MFD_NOEXEC_SEAL;
#else
  constexpr unsigned kNoProgram = 0x0008U;  // its number since Linux 6.3
#endif
  const int file = memfd_create(name, MFD_CLOEXEC | kNoProgram);
  return file >= 0 || errno != EINVAL ? file : memfd_create(name, MFD_CLOEXEC);
}

std::byte* map_file_ranges(int file, std::span<const FileRange> ranges) noexcept {
  std::int64_t bytes = 0;
  for (const FileRange& range : ranges) bytes += range.bytes;
  std::byte* const start = reserve(ranges.front().begin, bytes);
  if (start == nullptr) return nullptr;
  std::byte* at = start;
  for (const FileRange& range : ranges) {
    if (mmap(at, size(range.bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, range.begin) == MAP_FAILED) {
      const int code = errno;
      munmap(start, size(bytes));
      errno = code;
      return nullptr;
    }
    at += range.bytes;
  }
  return start;
}

}  // namespace tandem
