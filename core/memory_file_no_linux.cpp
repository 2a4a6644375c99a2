// Systems without such files.
#include "tandem/core/memory_file.h"

#include <cerrno>

namespace tandem {

int make_memory_file(const char* /*name*/) {
  errno = ENOSYS;
  return -1;
}

std::byte* map_file_ranges(int /*file*/, std::span<const FileRange> /*ranges*/) noexcept { return nullptr; }

}  // namespace tandem
