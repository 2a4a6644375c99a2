// Large blocks that are given up leave the process, whatever lies beside them.
#include "tandem/core/cpu_allocator.h"
#include "tests/support/catch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

using namespace tandem;

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

namespace {

// How much of these blocks is in memory. Not of the whole process: ThreadSanitizer keeps its own notes about freed
// memory.
std::int64_t resident_bytes(const std::vector<void*>& blocks, std::int64_t block_bytes) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  std::int64_t resident = 0;
  for (void* const block : blocks) {
    for (std::int64_t at = 0; at < block_bytes; at += page) {
      unsigned char state = 0;
      const int mapped = mincore(static_cast<std::byte*>(block) + at, static_cast<std::size_t>(page), &state);
      if (mapped == 0 && (state & 1) != 0) resident += page;
    }
  }
  return resident;
}

}  // namespace

TEST_CASE("the allocator gives large blocks back to the system, though later ones stay") {
  constexpr std::int64_t kBlock = std::int64_t{12} << 20;
  CpuAllocator allocator;
  // From here on malloc would serve blocks of this size from its heap, which only shrinks at its end.
  allocator.deallocate(allocator.allocate(2 * kBlock), 2 * kBlock);
  allocator.release_cached();

  std::vector<void*> blocks(8);
  for (void*& block : blocks) std::memset(block = allocator.allocate(kBlock), 1, kBlock);
  REQUIRE(resident_bytes(blocks, kBlock) >= 8 * kBlock);
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) allocator.deallocate(blocks[i], kBlock);
  allocator.release_cached();
  CHECK(resident_bytes(blocks, kBlock) < 2 * kBlock);
  allocator.deallocate(blocks.back(), kBlock);
}

#endif
