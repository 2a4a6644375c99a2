// Blocks that take over each other's pages.
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/page_block.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
#endif

using namespace tandem;

namespace {

constexpr std::int64_t kPage = PageBlock::kPage;

std::span<std::uint64_t> numbers(const PageBlock& block) {
  return {reinterpret_cast<std::uint64_t*>(block.start()), static_cast<std::size_t>(block.capacity()) / 8};
}

/// Another number at each place of each block.
void fill(const PageBlock& block, std::uint64_t which) {
  std::uint64_t number = which << 40;
  for (std::uint64_t& place : numbers(block)) place = number++;
}

/// Whether `bytes` from `offset` on are what fill() has put at `from` of that one.
bool holds(const PageBlock& block, std::int64_t offset, std::int64_t bytes, std::uint64_t which, std::int64_t from) {
  std::uint64_t number = (which << 40) + static_cast<std::uint64_t>(from / 8);
  const auto part = numbers(block).subspan(static_cast<std::size_t>(offset / 8), static_cast<std::size_t>(bytes / 8));
  return std::ranges::all_of(part, [&](std::uint64_t place) { return place == number++; });
}

}  // namespace

TEST_CASE("a block has the memory that was asked for, or none") {
  PageBlock block(kPage);
  CHECK(block.capacity() == kPage);
  fill(block, 1);
  CHECK_FALSE(block.has_movable_pages());
  PageBlock other(std::move(block));
  CHECK(block.capacity() == 0);
  CHECK(block.start() == nullptr);
  CHECK(holds(other, 0, kPage, 1, 0));
  CHECK(PageBlock(5 * kPage - 1).capacity() == 5 * kPage);
  CHECK(PageBlock(100'000).capacity() == 102'400);
#if !defined(__SANITIZE_ADDRESS__)  // which ends the process
  CHECK(PageBlock(std::int64_t{1} << 62).capacity() == 0);
#endif
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

TEST_CASE("pages go over from the end of a block with what is in them") {
  PageBlock donor(5 * kPage), block(4 * kPage);
  fill(donor, 1);
  fill(block, 2);
  REQUIRE(donor.has_movable_pages());
  CHECK(block.take_pages(donor, kPage, 2 * kPage) == 2 * kPage);
  CHECK(donor.capacity() == 3 * kPage);
  CHECK(holds(donor, 0, 3 * kPage, 1, 0));
  CHECK(holds(block, 0, kPage, 2, 0));
  CHECK(holds(block, kPage, 2 * kPage, 1, 3 * kPage));
  CHECK(holds(block, 3 * kPage, kPage, 2, 3 * kPage));

  PageBlock next(4 * kPage);
  CHECK(next.take_pages(block, 0, 4 * kPage) == 4 * kPage);
  CHECK(block.capacity() == 0);
  CHECK(holds(next, 0, kPage, 2, 3 * kPage));
  CHECK(holds(next, kPage, 2 * kPage, 1, 3 * kPage));
  CHECK(holds(next, 3 * kPage, kPage, 2, 0));
}

TEST_CASE("a block of parts gives pages across them") {
  PageBlock first(4 * kPage), second(2 * kPage), gathered(8 * kPage);
  fill(first, 1);
  fill(second, 2);
  fill(gathered, 3);
  CHECK(gathered.take_pages(first, 0, 3 * kPage) == 3 * kPage);
  CHECK(gathered.take_pages(second, 3 * kPage, 100 * kPage) == 2 * kPage);
  CHECK(second.capacity() == 0);
  CHECK(first.capacity() == kPage);

  PageBlock last(10 * kPage);
  fill(last, 4);
  CHECK(last.take_pages(gathered, 4 * kPage, 100 * kPage) == 6 * kPage);  // no more than there is room for
  CHECK(gathered.capacity() == 2 * kPage);
  CHECK(holds(gathered, 0, 2 * kPage, 1, kPage));
  CHECK(holds(last, 0, 4 * kPage, 4, 0));
  // Parts come in the order in which they were taken, from the end of the donor on.
  CHECK(holds(last, 4 * kPage, 3 * kPage, 3, 5 * kPage));
  CHECK(holds(last, 7 * kPage, 2 * kPage, 2, 0));
  CHECK(holds(last, 9 * kPage, kPage, 1, 3 * kPage));

  PageBlock small(kPage);
  CHECK(small.take_pages(last, 0, kPage) == 0);
  CHECK(last.take_pages(small, 0, kPage) == 0);
}

TEST_CASE("what goes is given back: donors, takers, and pages that others take the place of") {
  std::vector<std::pair<void*, std::size_t>> places;
  {
    PageBlock donor(6 * kPage), block(6 * kPage);
    fill(donor, 1);
    fill(block, 2);
    places = {{donor.start(), 6 * kPage}, {block.start(), 6 * kPage}};
    REQUIRE(block.take_pages(donor, kPage, 4 * kPage) == 4 * kPage);
  }
  for (const auto& [start, bytes] : places) {
    unsigned char state = 0;
    for (std::size_t at = 0; at < bytes; at += kPage) {
      const int mapped = mincore(static_cast<std::byte*>(start) + at, 4096, &state);
      CHECK((mapped != 0 || (state & 1) == 0));
    }
  }
}

TEST_CASE("a new block beyond the bound takes over pages of cached ones, and the system clears none") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20, kLarge = 96 * kMiB, kLarger = 190 * kMiB;
  CpuAllocator allocator;
  void* const first = allocator.allocate(kLarge);
  void* const second = allocator.allocate(kLarge);
  std::memset(first, 1, kLarge);
  std::memset(second, 2, kLarge);
  allocator.deallocate(first, kLarge);
  allocator.deallocate(second, kLarge);
  REQUIRE(allocator.cached_bytes() == 2 * kLarge);

  [[maybe_unused]] const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  // 64 MiB are to spare: of the 190 at least 126 have to come from the cache, from both.
  constexpr std::int64_t kTaken = kLarger - 64 * kMiB;
  auto* const block = static_cast<unsigned char*>(allocator.allocate(kLarger));
  CHECK(kLarger + allocator.cached_bytes() <= 2 * kLarge + 64 * kMiB);
  CHECK(std::ranges::all_of(std::span(block, kTaken), [](unsigned char value) { return value == 1 || value == 2; }));
#if !defined(__SANITIZE_THREAD__)  // which has pages of its own for each address
  const auto before = faults();
  std::memset(block, 3, kTaken);
  CHECK(faults() - before < 10);
#endif
  allocator.deallocate(block, kLarger);
}

TEST_CASE("blocks keep their content while others come and go, within the bound") {
  struct Live {
    unsigned char* start;
    std::int64_t bytes;
    unsigned char mark;
  };
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  std::mt19937 random(1);
  CpuAllocator allocator;
  std::vector<Live> live;
  std::int64_t bytes_live = 0, most = 0;
  const auto is_whole = [](const Live& one) {
    for (std::int64_t at = 0; at < one.bytes; at += 4096)
      if (one.start[at] != one.mark) return false;
    return one.start[one.bytes - 1] == one.mark;
  };
  for (int step = 0; step < 600; ++step) {
    if (live.size() < 8 && random() % 5 < 3) {
      const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % (32 * kMiB));
      Live one{static_cast<unsigned char*>(allocator.allocate(bytes)), bytes, static_cast<unsigned char>(step)};
      for (std::int64_t at = 0; at < bytes; at += 4096) one.start[at] = one.mark;
      one.start[bytes - 1] = one.mark;
      live.push_back(one);
      bytes_live += bytes;
      most = std::max(most, bytes_live);
      // Blocks are rounded up, by 2 MiB at most, and by an eighth where a cached one is taken.
      const std::int64_t rounded = most + most / 8 + 8 * 2 * kMiB;
      CHECK(bytes_live + allocator.cached_bytes() <= rounded + 64 * kMiB + bytes);
    } else if (!live.empty()) {
      const auto which = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
      REQUIRE(is_whole(*which));
      allocator.deallocate(which->start, which->bytes);
      bytes_live -= which->bytes;
      live.erase(which);
    }
  }
  for (const Live& one : live) {
    CHECK(is_whole(one));
    allocator.deallocate(one.start, one.bytes);
  }
}

TEST_CASE("a block gives back pages from its end") {
  PageBlock first(4 * kPage), second(4 * kPage);
  fill(first, 1);
  fill(second, 2);
  REQUIRE(first.take_pages(second, kPage, 2 * kPage) == 2 * kPage);
  first.give_back_end(2 * kPage);
  CHECK(first.capacity() == 2 * kPage);
  CHECK(holds(first, 0, kPage, 1, 0));
  CHECK(holds(first, kPage, kPage, 2, 2 * kPage));
  unsigned char state = 0;
  CHECK(mincore(first.start() + 2 * kPage, 4096, &state) != 0);
  // What is left is still known by its parts.
  PageBlock next(4 * kPage);
  CHECK(next.take_pages(first, 0, 4 * kPage) == 2 * kPage);
  CHECK(holds(next, 0, kPage, 2, 2 * kPage));
  CHECK(holds(next, kPage, kPage, 1, 0));
}

TEST_CASE("small blocks beyond the bound cost no large one") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20, kLarge = 200 * kMiB;
  CpuAllocator allocator;
  allocator.deallocate(allocator.allocate(kLarge), kLarge);
  std::vector<void*> small(80);
  for (void*& block : small) block = allocator.allocate(kMiB);
  // 64 MiB are to spare, and are used up.
  CHECK(allocator.cached_bytes() == kLarge - 16 * kMiB);
  for (void* const block : small) allocator.deallocate(block, kMiB);
  CHECK(allocator.cached_bytes() == kLarge + 64 * kMiB);
}

TEST_CASE("blocks whose pages are too small to be moved are given back") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20, kSmall = 3 * kMiB, kLarger = 130 * kMiB;
  CpuAllocator allocator;
  std::vector<void*> small(40);
  for (void*& block : small) block = allocator.allocate(kSmall);
  for (void* const block : small) allocator.deallocate(block, kSmall);
  REQUIRE(allocator.cached_bytes() == 120 * kMiB);
  void* const larger = allocator.allocate(kLarger);
  CHECK(kLarger + allocator.cached_bytes() <= (120 + 64) * kMiB);
  allocator.deallocate(larger, kLarger);
}

TEST_CASE("a block that the system has cut up is moved, or given back where the system moves no such thing") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20, kLarge = 200 * kMiB, kLarger = 230 * kMiB;
  CpuAllocator allocator;
  auto* const block = static_cast<std::byte*>(allocator.allocate(kLarge));
  std::memset(block, 1, kLarge);
  // Advice on a part of a mapping makes it three, of which Linux moves one at a time before 6.17.
  REQUIRE(madvise(block + 100 * kMiB, 50 * kMiB, MADV_DONTDUMP) == 0);
  allocator.deallocate(block, kLarge);
  auto* const larger = static_cast<std::byte*>(allocator.allocate(kLarger));
  std::memset(larger, 2, kLarger);
  CHECK(kLarger + allocator.cached_bytes() <= kLarger + 64 * kMiB);
  allocator.deallocate(larger, kLarger);
}

#endif
