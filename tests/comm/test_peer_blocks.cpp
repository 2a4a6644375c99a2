// Blocks of other processes, mapped here. That collectives of processes use them is in mpi/shared_tensors.cpp.
#include "tandem/comm/transports/shared_memory/peer_blocks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/limit_scope.h"
#include "tests/support/skip.h"

#if defined(__linux__)

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// An allocator as of another process, and what this one sees of it as rank 1.
struct Peer {
  Peer() : obstacle(allocator.share_blocks()) {
    if (obstacle.empty())
      blocks = std::make_unique<PeerBlocks>(std::vector<std::string>{"", handle_of_file(allocator.shared_file())}, 0);
  }

  std::byte* view(const CpuAllocator::PlaceInFile& place) const {
    return blocks->view(1, place.layout, place.block, place.offset);
  }

  CpuAllocator allocator;
  std::string obstacle;
  std::unique_ptr<PeerBlocks> blocks;
};

/// What `body` gives where this process gets so many bytes of addresses more.
template <typename Body>
std::string with_addresses(std::int64_t bytes, Body&& body) {
  const LimitScope limit(RLIMIT_AS, mapped_bytes() + bytes);
  return body();
}

}  // namespace

TEST_CASE("peer blocks: what a rank has in a block another one sees, and changes, at addresses of its own") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  for (const std::int64_t bytes : {40'000, 5 << 20}) {
    auto* const mine = static_cast<std::byte*>(peer.allocator.allocate(bytes));
    std::memset(mine, 1, static_cast<std::size_t>(bytes));
    const auto place = peer.allocator.find_shared(mine + 100, 1000);
    REQUIRE(place);
    std::byte* const seen = peer.view(*place);
    CHECK(seen != mine + 100);
    CHECK(*seen == std::byte{1});
    mine[100] = std::byte{2};
    CHECK(*seen == std::byte{2});
    seen[1] = std::byte{3};
    CHECK(mine[101] == std::byte{3});
    const auto end = peer.allocator.find_shared(mine + bytes - 1, 1);
    CHECK(*peer.view(*end) == std::byte{1});
    peer.allocator.deallocate(mine, bytes);
  }
  CHECK(peer.blocks->mapped(1) == 2);  // once each
}

TEST_CASE("peer blocks: blocks whose pages have come from several others are seen as a whole") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kMiB = 1 << 20, kLarge = 96 * kMiB, kLarger = 190 * kMiB;
  void* const first = peer.allocator.allocate(kLarge);
  void* const second = peer.allocator.allocate(kLarge);
  std::memset(first, 1, kLarge);
  std::memset(second, 2, kLarge);
  CHECK(*peer.view(*peer.allocator.find_shared(first, kLarge)) == std::byte{1});
  peer.allocator.deallocate(first, kLarge);
  peer.allocator.deallocate(second, kLarge);
  // 64 MiB are to spare: of the 190 at least 126 have to come from the cache, from both.
  auto* const larger = static_cast<std::byte*>(peer.allocator.allocate(kLarger));
  const auto place = peer.allocator.find_shared(larger, kLarger);
  REQUIRE(place);
#if !defined(__SANITIZE_ADDRESS__)  // with which no pages are moved
  CHECK(place->block.count > 1);
#endif
  for (std::int64_t at = 0; at < kLarger; at += 4096) larger[at] = static_cast<std::byte>(at / 4096 % 251);
  const std::byte* const seen = peer.view(*place);
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < kLarger; at += 4096) wrong += seen[at] != larger[at];
  CHECK(wrong == 0);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(peer.blocks->mapped(1) == 1);  // the first has given pages to it, and is as it was no more
#endif
  peer.allocator.deallocate(larger, kLarger);
}

TEST_CASE("peer blocks: pages that another rank writes first are as large as those that the owner does") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kPages = 8;
  void* const mine = peer.allocator.allocate(kPages * PageBlock::kPage);
  std::byte* const seen = peer.view(*peer.allocator.find_shared(mine, 1));
  for (std::int64_t page = 0; page < kPages; ++page) seen[page * PageBlock::kPage] = std::byte{1};
  struct stat status{};
  REQUIRE(fstat(peer.allocator.shared_file(), &status) == 0);
  // One at least, as where memory is in pieces the system may have few.
  CHECK(status.st_blocks * 512 >= PageBlock::kPage);
  peer.allocator.deallocate(mine, kPages * PageBlock::kPage);
}

TEST_CASE("peer blocks: of very many those stay mapped that were used last") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kLimit = PeerBlocks::kMost / 2, kBytes = 4096;  // of two ranks
  auto* const mine = static_cast<std::byte*>(peer.allocator.allocate((kLimit + 1) * kBytes));
  const std::int64_t begin = peer.allocator.find_shared(mine, 1)->block.ranges.front().begin;
  // As if each page was a block.
  const auto page = [&](std::int64_t i) {
    CpuAllocator::PlaceInFile place{.layout = static_cast<std::uint64_t>(i), .offset = 8, .block = {.count = 1}};
    place.block.ranges.front() = {begin + i * kBytes, kBytes};
    return peer.view(place);
  };
  std::byte* const first = page(0);
  for (std::int64_t i = 0; i < kLimit; ++i) page(i);
  CHECK(peer.blocks->mapped(1) == kLimit);
  CHECK(page(0) == first);  // which makes it the one that was used last
  mine[kLimit * kBytes + 8] = std::byte{5};
  CHECK(*page(kLimit) == std::byte{5});
  CHECK(peer.blocks->mapped(1) == kLimit / 2 + 1);
  CHECK(page(0) == first);
  CHECK(peer.blocks->mapped(1) == kLimit / 2 + 1);
  mine[8 + kBytes] = std::byte{6};
  CHECK(*page(1) == std::byte{6});  // once more
  CHECK(peer.blocks->mapped(1) == kLimit / 2 + 2);
  peer.allocator.deallocate(mine, (kLimit + 1) * kBytes);
}

TEST_CASE("peer blocks: files that are not there, or are others, are refused") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  std::string handle = handle_of_file(peer.allocator.shared_file());
  CHECK_THAT(error_of([&] { PeerBlocks({"", "nonsense"}, 0); }), ContainsText("'nonsense' is no handle"));
  CHECK_THAT(error_of([&] { PeerBlocks({"", "999999999" + handle.substr(handle.find(' '))}, 0); }),
             ContainsText("cannot open /proc/999999999/fd/"));
}

TEST_CASE("peer blocks: a block that shares pages with others takes their place") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kBytes = 4096;
  auto* const mine = static_cast<std::byte*>(peer.allocator.allocate(16 * kBytes));
  const std::int64_t begin = peer.allocator.find_shared(mine, 1)->block.ranges.front().begin;
  // Pages from one to before another, for each range.
  const auto view = [&](std::initializer_list<std::pair<int, int>> ranges) {
    CpuAllocator::PlaceInFile place;
    for (const auto& [first, last] : ranges) place.layout = place.layout * 512 + first * 16 + last;
    for (const auto& [first, last] : ranges)
      place.block.ranges[place.block.count++] = {begin + first * kBytes, (last - first) * kBytes};
    return peer.view(place);
  };
  std::byte* const alone = view({{8, 10}});
  view({{0, 4}});
  view({{14, 16}, {4, 6}});
  CHECK(peer.blocks->mapped(1) == 3);
  view({{10, 12}, {6, 8}});  // beside all of them
  CHECK(peer.blocks->mapped(1) == 4);
  std::byte* const seen = view({{3, 5}});  // parts of two
  CHECK(peer.blocks->mapped(1) == 3);
  mine[4 * kBytes + 1] = std::byte{4};
  CHECK(seen[kBytes + 1] == std::byte{4});
  view({{12, 16}, {0, 3}});  // all that the two had beside
  CHECK(peer.blocks->mapped(1) == 4);
  view({{11, 12}});  // within one
  CHECK(peer.blocks->mapped(1) == 4);
  CHECK(view({{8, 10}}) == alone);
  view({{0, 16}});
  CHECK(peer.blocks->mapped(1) == 1);
  peer.allocator.deallocate(mine, 16 * kBytes);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // whose addresses have no limit
TEST_CASE("peer blocks: where the system maps no more, those go that were not used for longest") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kBytes = 64 << 20;
  std::vector<void*> blocks(4);
  std::vector<CpuAllocator::PlaceInFile> places;
  for (void*& block : blocks) {
    block = peer.allocator.allocate(kBytes);
    places.push_back(*peer.allocator.find_shared(block, kBytes));
  }
  for (int i = 0; i < 3; ++i) peer.view(places[i]);
  const std::string text = with_addresses(4 << 20, [&] { return error_of([&] { peer.view(places[3]); }); });
  CHECK(text == "no error");
  CHECK(peer.blocks->mapped(1) == 3);
  for (void* const block : blocks) peer.allocator.deallocate(block, kBytes);
}

TEST_CASE("peer blocks: where the system maps no more, the error says so") {
  Peer peer;
  if (!runs_unless(peer.obstacle)) return;
  constexpr std::int64_t kBytes = 64 << 20;
  void* const mine = peer.allocator.allocate(kBytes);
  const auto place = peer.allocator.find_shared(mine, kBytes);
  const std::string text = with_addresses(1 << 20, [&] { return error_of([&] { peer.view(*place); }); });
  CHECK(text == "cannot map a block of 67108864 bytes of rank 1: Cannot allocate memory");
  peer.allocator.deallocate(mine, kBytes);
}
#endif

#endif
