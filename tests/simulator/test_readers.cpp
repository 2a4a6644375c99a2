// Lists of readers: what is added is found, dropped and copied, whatever the order of nodes.
#include "tandem/simulator/readers.h"
#include "tests/support/catch.h"

#include <set>

using tandem::simulator::ReaderLists;
using tandem::simulator::Readers;

namespace {

std::set<std::uint64_t> stamps_of(ReaderLists& lists, ReaderLists::List list) {
  std::set<std::uint64_t> stamps;
  lists.find(list, [&](const Readers& group) {
    CHECK(stamps.insert(group.stamp).second);
    return false;
  });
  return stamps;
}

}  // namespace

TEST_CASE("lists of readers keep what is added, and share no nodes") {
  ReaderLists lists;
  ReaderLists::List first = 0, second = 0;
  std::set<std::uint64_t> odd, all;
  for (std::uint64_t stamp = 1; stamp <= 20; ++stamp) {
    lists.add(first, {stamp, 1u << stamp, 7});
    all.insert(stamp);
    if (stamp % 2 == 1) odd.insert(stamp);
  }
  CHECK(stamps_of(lists, first) == all);
  second = lists.copy(first);
  lists.erase_if(first, [](const Readers& group) { return group.stamp % 2 == 0; });
  CHECK(stamps_of(lists, first) == odd);
  CHECK(stamps_of(lists, second) == all);

  const Readers* const found = lists.find(second, [](const Readers& group) { return group.stamp == 12; });
  REQUIRE(found != nullptr);
  CHECK(found->lanes == 1u << 12);
  CHECK(found->site == 7);
  CHECK(lists.find(first, [](const Readers& group) { return group.stamp == 12; }) == nullptr);

  lists.clear(first);
  CHECK(first == 0);
  CHECK(stamps_of(lists, second) == all);
  for (std::uint64_t stamp = 101; stamp <= 130; ++stamp) lists.add(first, {stamp, 1, 0});
  CHECK(stamps_of(lists, first).size() == 30);
  CHECK(stamps_of(lists, second) == all);
  lists.erase_if(second, [](const Readers&) { return true; });
  CHECK(second == 0);
}
