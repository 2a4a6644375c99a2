// Blocks of the CPU's memory that other processes can map.
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/error.h"
#include "tandem/core/memory_file.h"
#include "tandem/core/out.h"
#include "tandem/core/page_file.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/forked.h"
#include "tests/support/limit_scope.h"
#include "tests/support/skip.h"

#if defined(__linux__)

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kPage = PageBlock::kPage, kMiB = std::int64_t{1} << 20;

/// "", or why this system has no such files.
std::string obstacle() {
  try {
    const PageFile file;
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Memory that a file has taken.
std::int64_t bytes_taken(int file) {
  struct stat status{};
  REQUIRE(fstat(file, &status) == 0);
  return static_cast<std::int64_t>(status.st_blocks) * 512;
}

bool is_all(const std::byte* start, std::int64_t bytes, int value) {
  return std::ranges::all_of(std::span(start, static_cast<std::size_t>(bytes)),
                             [&](std::byte place) { return place == static_cast<std::byte>(value); });
}

void fill(void* start, std::int64_t bytes, int value) { std::memset(start, value, static_cast<std::size_t>(bytes)); }

}  // namespace

TEST_CASE("page file: who maps a range sees what its owner writes, and writes what the owner sees") {
  if (!runs_unless(obstacle())) return;
  PageFile file;
  const PageFile::Mapped small = file.map(3 * 4096, 4096), large = file.map(2 * kPage, kPage);
  REQUIRE((small.start != nullptr && large.start != nullptr));
  CHECK(reinterpret_cast<std::uintptr_t>(large.start) % kPage == 0);
  CHECK(large.range.begin % kPage == 0);
  CHECK(large.range.begin >= small.range.begin + 3 * 4096);
  CHECK(is_all(small.start, 3 * 4096, 0));
  CHECK(is_all(large.start, 2 * kPage, 0));
  fill(small.start, 3 * 4096, 1);
  fill(large.start, 2 * kPage, 2);
  std::byte* const other_small = map_file_ranges(file.descriptor(), {&small.range, 1});
  std::byte* const other_large = map_file_ranges(file.descriptor(), {&large.range, 1});
  REQUIRE((other_small != nullptr && other_large != nullptr));
  CHECK(is_all(other_small, 3 * 4096, 1));
  CHECK(is_all(other_large, 2 * kPage, 2));
  CHECK(reinterpret_cast<std::uintptr_t>(other_large) % kPage == 0);
  other_large[kPage] = std::byte{7};
  CHECK(large.start[kPage] == std::byte{7});
  // Parts in another order, one behind another.
  large.start[0] = std::byte{8};
  const FileRange swapped[] = {{large.range.begin + kPage, kPage}, {large.range.begin, kPage}};
  std::byte* const both = map_file_ranges(file.descriptor(), swapped);
  REQUIRE(both != nullptr);
  CHECK((both[0] == std::byte{7} && both[kPage] == std::byte{8} && both[2 * kPage - 1] == std::byte{2}));
  munmap(both, 2 * kPage);
  munmap(other_small, 3 * 4096);
  munmap(other_large, 2 * kPage);
  munmap(small.start, 3 * 4096);
  munmap(large.start, 2 * kPage);
}

TEST_CASE("page file: what is given back takes no memory, and its place is not used again") {
  if (!runs_unless(obstacle())) return;
  PageFile file;
  CHECK(bytes_taken(file.descriptor()) == 0);
  const PageFile::Mapped first = file.map(4 * kPage, kPage);
  CHECK(bytes_taken(file.descriptor()) == 0);  // until it is written
  fill(first.start, 4 * kPage, 1);
  CHECK(bytes_taken(file.descriptor()) == 4 * kPage);
  file.give_back({first.range.begin + 3 * kPage, kPage});
  CHECK(bytes_taken(file.descriptor()) == 3 * kPage);
  CHECK(is_all(first.start, 3 * kPage, 1));
  CHECK(is_all(first.start + 3 * kPage, kPage, 0));
  munmap(first.start, 4 * kPage);
  file.give_back(first.range);
  CHECK(bytes_taken(file.descriptor()) == 0);
  const PageFile::Mapped second = file.map(kPage, kPage);
  CHECK(second.range.begin >= first.range.begin + 4 * kPage);
  CHECK(is_all(second.start, kPage, 0));
  munmap(second.start, kPage);
  CHECK(file.map(std::int64_t{1} << 50, kPage).start == nullptr);  // more than the machine has
}

TEST_CASE("page file: blocks take over each other's pages with their places, and give them back") {
  if (!runs_unless(obstacle())) return;
  const auto file = std::make_shared<PageFile>();
  const auto begins = [](const PageBlock& block) {
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    for (const PageBlock::Part& part : block.parts()) parts.emplace_back(part.in_file, part.bytes);
    return parts;
  };
  {
    PageBlock donor(5 * kPage, file), block(4 * kPage, file), alone(4 * kPage);
    REQUIRE((donor.is_in_file() && block.is_in_file() && !alone.is_in_file()));
    const std::int64_t of_donor = donor.parts().front().in_file, of_block = block.parts().front().in_file;
    fill(donor.start(), 5 * kPage, 1);
    fill(block.start(), 4 * kPage, 2);
    CHECK(bytes_taken(file->descriptor()) == 9 * kPage);
    CHECK(block.take_pages(alone, 0, kPage) == 0);  // of no file
    CHECK(alone.take_pages(block, 0, kPage) == 0);
#if !defined(__SANITIZE_ADDRESS__)  // with which no pages are moved
    CHECK(block.take_pages(donor, kPage, 2 * kPage) == 2 * kPage);
    CHECK(begins(donor) == decltype(begins(donor)){{of_donor, 3 * kPage}});
    CHECK(begins(block) ==
          decltype(begins(block)){{of_block, kPage}, {of_donor + 3 * kPage, 2 * kPage}, {of_block + 3 * kPage, kPage}});
    CHECK(is_all(block.start() + kPage, 2 * kPage, 1));
    CHECK(bytes_taken(file->descriptor()) == 7 * kPage);  // two have been given back
    // Others see the block by its parts.
    std::vector<FileRange> ranges;
    for (const PageBlock::Part& part : block.parts()) ranges.push_back({part.in_file, part.bytes});
    std::byte* const other = map_file_ranges(file->descriptor(), ranges);
    REQUIRE(other != nullptr);
    CHECK((is_all(other, kPage, 2) && is_all(other + kPage, 2 * kPage, 1) && is_all(other + 3 * kPage, kPage, 2)));
    block.start()[2 * kPage] = std::byte{9};
    CHECK(other[2 * kPage] == std::byte{9});
    munmap(other, 4 * kPage);
    block.give_back_end(2 * kPage);  // a part, and a half of one
    CHECK(begins(block) == decltype(begins(block)){{of_block, kPage}, {of_donor + 3 * kPage, kPage}});
    CHECK(bytes_taken(file->descriptor()) == 5 * kPage);
#endif
  }
  CHECK(bytes_taken(file->descriptor()) == 0);
}

TEST_CASE("page file: no more blocks are in files than a process may have mappings") {
  if (!runs_unless(obstacle())) return;
  const auto file = std::make_shared<PageFile>();
  std::vector<PageBlock> blocks;
  while (blocks.size() < 20'000) {
    blocks.emplace_back(4096, file);
    if (blocks.back().capacity() == 0) break;
  }
  CHECK(blocks.size() > 16'000);
  CHECK(blocks.size() < 20'000);
  blocks.pop_back();
  blocks.pop_back();
  CHECK(PageBlock(4096, file).capacity() == 4096);
}

TEST_CASE("page file: a process with limits that such files do not know has none") {
  {
    const LimitScope limit(RLIMIT_FSIZE, std::int64_t{1} << 30);
    CHECK(obstacle() == "blocks that others can map: this process has a limit of its files (ulimit -f)");
  }
  {
    const LimitScope limit(RLIMIT_DATA, std::int64_t{1} << 40);
    CHECK(obstacle() == "blocks that others can map: this process has a limit of its memory (ulimit -d)");
  }
  {
    const LimitScope limit(RLIMIT_AS, std::int64_t{1} << 50);
    CHECK(obstacle() == "blocks that others can map: this process has a limit of its addresses (ulimit -v)");
  }
}

TEST_CASE("allocator: blocks are found in the file, from the largest to 32 KiB, and others are not") {
  if (!runs_unless(obstacle())) return;
  CpuAllocator allocator;
  auto* const before = static_cast<std::byte*>(allocator.allocate(5 * kMiB));
  allocator.deallocate(allocator.allocate(kMiB), kMiB);
  CHECK(allocator.shared_file() == -1);
  CHECK_FALSE(allocator.find_shared(before, 1));
  REQUIRE(allocator.share_blocks() == "");
  CHECK(allocator.share_blocks() == "");  // the same one
  CHECK(allocator.cached_bytes() == 0);
  for (const std::int64_t bytes : {32 * 1024, 100'000, 1 << 20, 9 << 20}) {
    auto* const block = static_cast<std::byte*>(allocator.allocate(bytes));
    fill(block, bytes, 3);
    const auto place = allocator.find_shared(block + 64, bytes - 64);
    REQUIRE(place);
    CHECK(place->offset == 64);
    REQUIRE(place->block.count == 1);
    const FileRange& range = place->block.ranges.front();
    CHECK(range.bytes >= bytes);
    std::byte* const other = map_file_ranges(allocator.shared_file(), {&range, 1});
    REQUIRE(other != nullptr);
    CHECK(is_all(other, bytes, 3));
    munmap(other, static_cast<std::size_t>(range.bytes));
    CHECK_FALSE(allocator.find_shared(block, range.bytes + 1));
    CHECK_FALSE(allocator.find_shared(block - 1, 1));
    allocator.deallocate(block, bytes);
    CHECK_FALSE(allocator.find_shared(block, 1));  // nobody has it
    auto* const again = static_cast<std::byte*>(allocator.allocate(bytes));
    CHECK(allocator.find_shared(again, bytes)->block == place->block);
    allocator.deallocate(again, bytes);
  }
  void* const small = allocator.allocate(32 * 1024 - 1);
  CHECK_FALSE(allocator.find_shared(small, 1));
  allocator.deallocate(small, 32 * 1024 - 1);
  // What was there before is in no file, and is not kept for later.
  const std::int64_t cached = allocator.cached_bytes();
  CHECK_FALSE(allocator.find_shared(before, 1));
  allocator.deallocate(before, 5 * kMiB);
  CHECK(allocator.cached_bytes() == cached);
  const int file = allocator.shared_file();
  CHECK(bytes_taken(file) > 0);
  allocator.release_cached();
  CHECK(bytes_taken(file) == 0);
}

#if !defined(__SANITIZE_ADDRESS__)  // with which no pages are moved
TEST_CASE("allocator: blocks whose pages come from up to 32 places are found") {
  if (!runs_unless(obstacle())) return;
  for (const std::int64_t donors : {31, 32}) {
    CpuAllocator allocator;
    REQUIRE(allocator.share_blocks() == "");
    std::vector<void*> small(48);
    for (void*& block : small) block = allocator.allocate(4 * kMiB);
    for (void* const block : small) allocator.deallocate(block, 4 * kMiB);
    // 64 MiB are to spare, and new. What is beyond comes from the cache.
    const std::int64_t bytes = 64 * kMiB + donors * 4 * kMiB;
    void* const large = allocator.allocate(bytes);
    const auto place = allocator.find_shared(large, bytes);
    CHECK(place.has_value() == (donors == 31));
    if (place) CHECK(place->block.count == 32);
    allocator.deallocate(large, bytes);
  }
}
#endif

TEST_CASE("allocator: where no more blocks can be in the file, others are kept for reuse as before") {
  if (!runs_unless(obstacle())) return;
  CpuAllocator allocator;
  REQUIRE(allocator.share_blocks() == "");
  std::vector<void*> small;
  while (PageBlock::may_be_in_file()) small.push_back(allocator.allocate(32 * 1024));
  void* const more = allocator.allocate(kMiB);
  CHECK_FALSE(allocator.find_shared(more, 1));
  allocator.deallocate(more, kMiB);
  CHECK(allocator.cached_bytes() == kMiB);
  void* const again = allocator.allocate(kMiB);
  CHECK(again == more);
  allocator.deallocate(small.back(), 32 * 1024);
  small.pop_back();
  allocator.release_cached();  // there is room now
  allocator.deallocate(again, kMiB);
  CHECK(allocator.cached_bytes() == 0);
  for (void* const block : small) allocator.deallocate(block, 32 * 1024);
}

#if !defined(__SANITIZE_ADDRESS__)  // with which no part of a block goes back
TEST_CASE("allocator: shared blocks beyond the bound are given back from their end, and keep their place") {
  if (!runs_unless(obstacle())) return;
  CpuAllocator allocator;
  REQUIRE(allocator.share_blocks() == "");
  constexpr std::int64_t kLarge = 200 * kMiB;
  auto* const large = static_cast<std::byte*>(allocator.allocate(kLarge));
  const auto place = allocator.find_shared(large, kLarge);
  fill(large, kLarge, 1);
  allocator.deallocate(large, kLarge);
  std::vector<void*> small(80);
  for (void*& block : small) block = allocator.allocate(kMiB);
  // 64 MiB are to spare, and are used up.
  CHECK(allocator.cached_bytes() == kLarge - 16 * kMiB);
  CHECK(bytes_taken(allocator.shared_file()) == kLarge - 16 * kMiB);
  auto* const rest = static_cast<std::byte*>(allocator.allocate(kLarge - 16 * kMiB));
  CHECK(rest == large);
  const FileRange whole = place->block.ranges.front();
  CHECK(allocator.find_shared(rest, 1)->block.ranges.front() == FileRange{whole.begin, kLarge - 16 * kMiB});
  CHECK(is_all(rest, kLarge - 16 * kMiB, 1));
  allocator.deallocate(rest, kLarge - 16 * kMiB);
  for (void* const block : small) allocator.deallocate(block, kMiB);
}
#endif

// Sanitizers hold locks of their own when they allocate.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("allocator: a process made by fork has shared blocks for itself, and its parent keeps what it has") {
  if (!runs_unless(obstacle())) return;
  // In a process of its own, as blocks stay shared.
  CHECK(exit_code_forked([] {
          if (!cpu_allocator().share_blocks().empty()) return 1;
          const Tensor live = Tensor::full({1 << 20}, 1.0), small = Tensor::full({1 << 14}, 1.0);
          auto* const values = Out(live).data<float>();
          auto* const small_values = Out(small).data<float>();
          Tensor::full({3 << 20}, 5.0);  // which is kept for later
          const int file = cpu_allocator().shared_file();
          const int code = exit_code_forked([&] {
            if (cpu_allocator().shared_file() != -1 || cpu_allocator().find_shared(values, 4)) return 1;
            if (values[0] != 1.0f || small_values[5] != 1.0f) return 2;
            live.fill(2.0);
            small.fill(2.0);
            const Tensor kept = Tensor::full({3 << 20}, 6.0), made = Tensor::full({5 << 20}, 7.0);
            if (values[1 << 19] != 2.0f || kept.narrow(0, 9, 1).item() != 6.0) return 3;
            cpu_allocator().release_cached();
            if (!cpu_allocator().share_blocks().empty()) return 4;
            const Tensor shared = Tensor::full({1 << 20}, 8.0);
            return cpu_allocator().find_shared(shared.raw_data(), 4) ? 0 : 5;
          });
          if (code != 0) return 10 + code;
          if (cpu_allocator().shared_file() != file || !cpu_allocator().find_shared(values, 4)) return 2;
          for (int i = 0; i < 1 << 20; ++i)
            if (values[i] != 1.0f) return 3;
          for (int i = 0; i < 1 << 14; ++i)
            if (small_values[i] != 1.0f) return 4;
          return 0;
        }) == 0);
}
#endif

#endif
