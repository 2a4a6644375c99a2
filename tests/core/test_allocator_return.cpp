// Large blocks that are given up leave the process, whatever lies beside them.
#include "core/cpu_allocator.h"
#include "tests/support/catch.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

using namespace tandem;

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

namespace {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("the allocator gives large blocks back to the system, though later ones stay") {
  constexpr std::int64_t kBlock = std::int64_t{12} << 20;
  CpuAllocator allocator;
  // From here on malloc would serve blocks of this size from its heap, which only shrinks at its end.
  allocator.deallocate(allocator.allocate(2 * kBlock), 2 * kBlock);
  allocator.release_cached();

  const std::int64_t before = resident_bytes();
  std::vector<void*> blocks(8);
  for (void*& block : blocks) std::memset(block = allocator.allocate(kBlock), 1, kBlock);
  REQUIRE(resident_bytes() - before >= 8 * kBlock);
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) allocator.deallocate(blocks[i], kBlock);
  allocator.release_cached();
  CHECK(resident_bytes() - before < 2 * kBlock);
  allocator.deallocate(blocks.back(), kBlock);
}

#endif
