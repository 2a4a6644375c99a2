// Blocks of the CPU's memory where the system moves no pages, or has no memory.
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/page_block.h"
#include "tandem/core/page_file.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"
#include "tests/support/memory_of.h"
#include "tests/support/skip.h"

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kPage = PageBlock::kPage;
constexpr std::size_t kPageSize = kPage;

/// Instead of moving what is at `from` to `to`; sets errno.
std::function<void(void* from, void* to, std::size_t bytes)> refuse;
int moves_before_that = 0;

}  // namespace

// This program's own, in place of the C library's.
extern "C" void* mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  if (refuse && --moves_before_that < 0) {
    refuse(from, to, bytes);
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, to));
}

namespace {

bool is_all(const std::byte* start, std::int64_t bytes, int value) {
  return std::ranges::all_of(std::span(start, static_cast<std::size_t>(bytes)),
                             [&](std::byte place) { return place == static_cast<std::byte>(value); });
}

void fill(const PageBlock& block, int value) {
  std::memset(block.start(), value, static_cast<std::size_t>(block.capacity()));
}

/// As Linux before 6.17, of a source that is several mappings.
void refuse_late(void* /*from*/, void* to, std::size_t bytes) {
  munmap(to, bytes);
  errno = EFAULT;
}

/// As any Linux near its limit of mappings.
void refuse_early(void* /*from*/, void* /*to*/, std::size_t /*bytes*/) { errno = ENOMEM; }

}  // namespace

// What has been refused stays known to the process, so each test makes one of its own. Its exit code says what was
// wrong.

TEST_CASE("a block is whole where the system has given back what was there and then moved nothing") {
  CHECK(exit_code_forked([] {
          PageBlock donor(4 * kPage), block(6 * kPage);
          fill(donor, 1);
          fill(block, 2);
          refuse = refuse_late;
          if (block.take_pages(donor, 2 * kPage, 2 * kPage) != 0) return 1;
          if (donor.capacity() != 4 * kPage || !is_all(donor.start(), 4 * kPage, 1)) return 2;
          if (block.capacity() != 6 * kPage || !is_all(block.start() + 2 * kPage, 2 * kPage, 0)) return 3;
          if (!is_all(block.start(), 2 * kPage, 2) || !is_all(block.start() + 4 * kPage, 2 * kPage, 2)) return 4;
          refuse = nullptr;
          return block.take_pages(donor, 2 * kPage, 2 * kPage) == 2 * kPage ? 0 : 5;
        }) == 0);
}

TEST_CASE("what another thread maps where a block had pages stays that thread's") {
  CHECK(exit_code_forked([] {
          std::byte* theirs = nullptr;
          {
            PageBlock donor(4 * kPage), block(6 * kPage);
            fill(donor, 1);
            fill(block, 2);
            refuse = [&](void* from, void* to, std::size_t bytes) {
              refuse_late(from, to, bytes);
              theirs =
                  static_cast<std::byte*>(mmap(static_cast<std::byte*>(to) + kPage, kPageSize, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
              std::memset(theirs, 7, kPageSize);
              errno = EFAULT;
            };
            if (block.take_pages(donor, 2 * kPage, 2 * kPage) != 0) return 1;
            if (donor.capacity() != 4 * kPage || !is_all(donor.start(), 4 * kPage, 1)) return 2;
            if (block.capacity() != 2 * kPage || !is_all(block.start(), 2 * kPage, 2)) return 3;
            if (!is_all(theirs, kPage, 7)) return 4;
            unsigned char state = 0;
            if (mincore(block.start() + 4 * kPage, kPageSize, &state) == 0) return 5;  // the rest is given back
            refuse = nullptr;
            if (block.take_pages(donor, 0, kPage) != 0) return 6;  // nothing is tried any more
          }
          return is_all(theirs, kPage, 7) ? 0 : 7;
        }) == 0);
}

TEST_CASE("a block of which the system has moved a part ends before that") {
  CHECK(exit_code_forked([] {
          PageBlock donor(4 * kPage), block(6 * kPage);
          fill(donor, 1);
          fill(block, 2);
          refuse = [](void* from, void* to, std::size_t bytes) {
            syscall(SYS_mremap, from, bytes / 2, bytes / 2, MREMAP_MAYMOVE | MREMAP_FIXED, to);
            errno = ENOMEM;
          };
          if (block.take_pages(donor, 2 * kPage, 2 * kPage) != 0) return 1;
          if (donor.capacity() != 2 * kPage || !is_all(donor.start(), 2 * kPage, 1)) return 2;
          return block.capacity() == 2 * kPage && is_all(block.start(), 2 * kPage, 2) ? 0 : 3;
        }) == 0);
}

TEST_CASE("blocks end before what is not theirs any more") {
  CHECK(exit_code_forked([] {
          PageBlock donor(4 * kPage), block(6 * kPage);
          fill(donor, 1);
          fill(block, 2);
          // There is nothing where the donor's last three pages begin. Linux gives back what is at the other side, or
          // does not, by its version.
          if (munmap(donor.start() + kPage, kPageSize) != 0) return 1;
          if (block.take_pages(donor, 2 * kPage, 3 * kPage) != 0) return 2;
          if (donor.capacity() != kPage || !is_all(donor.start(), kPage, 1)) return 3;
          if (block.capacity() != 2 * kPage && block.capacity() != 6 * kPage) return 4;
          if (!is_all(block.start(), 2 * kPage, 2)) return 5;
          fill(block, 3);
          return is_all(block.start(), block.capacity(), 3) ? 0 : 6;
        }) == 0);
}

TEST_CASE("blocks of a file end before what was not moved, and the file has no more than they have") {
  if (!runs_unless(CpuAllocator().share_blocks())) return;
  const auto refuse_after_half = [](void* from, void* to, std::size_t bytes) {
    syscall(SYS_mremap, from, bytes / 2, bytes / 2, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    errno = ENOMEM;
  };
  const std::function<void(void*, void*, std::size_t)> refusals[] = {refuse_early, refuse_late, refuse_after_half};
  for (int i = 0; i < 3; ++i) {
    CHECK(exit_code_forked([&] {
            const auto file = std::make_shared<PageFile>();
            PageBlock donor(4 * kPage, file), block(6 * kPage, file);
            fill(donor, 1);
            fill(block, 2);
            refuse = refusals[i];
            if (block.take_pages(donor, 2 * kPage, 2 * kPage) != 0) return 1;
            if (donor.capacity() != (i == 2 ? 2 : 4) * kPage || !is_all(donor.start(), donor.capacity(), 1)) return 2;
            if (block.capacity() != 2 * kPage || !is_all(block.start(), 2 * kPage, 2)) return 3;
            if (block.parts().size() != 1 || block.parts().front().bytes != 2 * kPage) return 4;
            struct stat status{};
            if (fstat(file->descriptor(), &status) != 0) return 5;
            return status.st_blocks * 512 == donor.capacity() + block.capacity() ? 0 : 6;
          }) == 0);
  }
}

TEST_CASE("where pages cannot be moved there are new ones, within the bound") {
  constexpr std::int64_t kLarge = 100 * kMiB, kLarger = 110 * kMiB;
  const auto refuse_by_filter = [](void*, void*, std::size_t) { errno = EPERM; };
  const std::function<void(void*, void*, std::size_t)> refusals[] = {refuse_by_filter, refuse_early, refuse_late};
  for (const auto& refusal : refusals) {
    CHECK(exit_code_forked([&] {
            CpuAllocator allocator;
            allocator.deallocate(allocator.allocate(kLarge), kLarge);
            refuse = refusal;
            for (std::int64_t bytes = kLarger; bytes < kLarger + 3 * kMiB; bytes += kMiB) {
              auto* const block = static_cast<std::byte*>(allocator.allocate(bytes));
              if (allocator.cached_bytes() > 64 * kMiB) return 1;
              std::memset(block, 3, static_cast<std::size_t>(bytes));
              allocator.deallocate(block, bytes);
            }
            return 0;
          }) == 0);
  }
}

TEST_CASE("a block has all that was asked for where the system refuses the second of two moves") {
  constexpr std::int64_t kLarge = 60 * kMiB, kLarger = 170 * kMiB;
  CHECK(exit_code_forked([] {
          CpuAllocator allocator;
          void* const first = allocator.allocate(kLarge);
          void* const second = allocator.allocate(kLarge);
          allocator.deallocate(first, kLarge);
          allocator.deallocate(second, kLarge);
          refuse = refuse_early;
          moves_before_that = 1;
          std::memset(allocator.allocate(kLarger), 3, static_cast<std::size_t>(kLarger));
          return moves_before_that < 0 ? 0 : 1;
        }) == 0);
}

#if !defined(__SANITIZE_THREAD__)  // which needs mappings itself, and has munmap() and operator new of its own

namespace {

bool refuses_to_unmap = false;

/// How often it may still be asked for memory before there is none, or a negative number.
thread_local int left = -1;

std::int64_t mapped_bytes() { return status_bytes("VmSize"); }

/// From now on the process has no more than it has, and `bytes`.
void limit_memory(std::int64_t bytes) {
  const auto most = static_cast<rlim_t>(mapped_bytes() + bytes);
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(99);
}

}  // namespace

extern "C" int munmap(void* start, std::size_t bytes) noexcept {
  if (!refuses_to_unmap) return static_cast<int>(syscall(SYS_munmap, start, bytes));
  errno = ENOMEM;
  return -1;
}

void* operator new(std::size_t bytes) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
// Not inline: the compiler would miss the operator new that goes with it.
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t /*bytes*/) noexcept { std::free(block); }

TEST_CASE("nothing is moved while blocks are of very many parts") {
  PageBlock first(4 * kPage), second(4 * kPage);
  CHECK(second.take_pages(first, 0, kPage) == kPage);
  std::vector<PageBlock> many;
  for (int i = 0; i < 17'000; ++i) many.emplace_back(2 * kPage);
  if (many.back().capacity() == 0) return skip_test("needs 68 GB of addresses, which this system counts as memory");
  CHECK(second.take_pages(first, 0, kPage) == 0);
  many.clear();
  CHECK(second.take_pages(first, 0, kPage) == kPage);
  for (int i = 0; i < 17'000; ++i) {
    PageBlock donor(2 * kPage);
    if (second.take_pages(donor, 0, 2 * kPage) != 2 * kPage) FAIL("no move after " << i);
  }
}

TEST_CASE("where the system takes no addresses back, it has the memory") {
  std::byte* start = nullptr;
  {
    const PageBlock block(4 * kPage);
    fill(block, 1);
    start = block.start();
    refuses_to_unmap = true;
  }
  refuses_to_unmap = false;
  CHECK(is_all(start, 4 * kPage, 0));
  REQUIRE(munmap(start, 4 * kPageSize) == 0);
}

TEST_CASE("memory that is kept goes back to the system where small blocks need it") {
  CHECK(exit_code_forked([] {
          CpuAllocator allocator;
          allocator.deallocate(allocator.allocate(256 * kMiB), 256 * kMiB);
          limit_memory(16 * kMiB);
          const bool is_enough = error_of([&] {
                                   for (int i = 0; i < 6'400; ++i) allocator.allocate(20 << 10);  // 125 MiB
                                 }) == "no error";
          return is_enough && allocator.cached_bytes() == 0 ? 0 : 1;
        }) == 0);
}

TEST_CASE("a block that cannot be noted is given back, and is in no count") {
  constexpr std::int64_t kBytes = 256 * kMiB;
  CHECK(exit_code_forked([] {
          CpuAllocator allocator;
          const std::int64_t before = mapped_bytes();
          int failures = 0;
          for (void* block = nullptr; block == nullptr; ++failures) {
            left = failures;
            try {
              block = allocator.allocate(kBytes);
            } catch (const std::bad_alloc&) {
              left = -1;
              if (mapped_bytes() > before + kBytes / 2) return 1;
              continue;
            }
            left = 0;
            allocator.deallocate(block, kBytes);  // must not throw
            left = -1;
          }
          if (failures < 3) return 2;  // the parts of a block, and the list of live ones
          if (allocator.cached_bytes() != 0 || mapped_bytes() > before + kBytes / 2) return 3;
          limit_memory(16 * kMiB);
          return error_of([&] { allocator.allocate(kBytes); }).find(" 0 in use") != std::string::npos ? 0 : 4;
        }) == 0);
}

TEST_CASE("pages that could not be noted stay where they are") {
  CHECK(exit_code_forked([] {
          PageBlock first(2 * kPage), second(2 * kPage), donor(4 * kPage), block(4 * kPage);
          fill(first, 1);
          fill(second, 2);
          if (donor.take_pages(first, 0, 2 * kPage) != 2 * kPage) return 1;
          if (donor.take_pages(second, 2 * kPage, 2 * kPage) != 2 * kPage) return 2;
          int failures = 0;
          for (std::int64_t taken = 0; taken == 0; ++failures) {
            left = failures;
            try {
              taken = block.take_pages(donor, kPage, 3 * kPage);
            } catch (const std::bad_alloc&) {
              taken = 0;
            }
            left = -1;
            const std::int64_t rest = 4 * kPage - taken;
            if (donor.capacity() != rest || !is_all(donor.start(), std::min(rest, 2 * kPage), 1)) return 3;
          }
          if (failures < 3) return 4;
          return is_all(block.start() + kPage, 2 * kPage, 2) && is_all(block.start() + 3 * kPage, kPage, 1) ? 0 : 5;
        }) == 0);
}

#endif

#endif
