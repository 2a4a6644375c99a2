// The prefetcher: order, bounds, exceptions and stopping.
#include "tandem/data/prefetcher.h"
#include "tests/support/catch.h"

#include <atomic>
#include <chrono>
#include <memory>

using namespace tandem;
using tandem::data::Prefetcher;

namespace {

void sleep_us(std::int64_t microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

}  // namespace

TEST_CASE("items come in order, each made once, for any number of threads") {
  const int threads = GENERATE(0, 1, 2, 7);
  const int depth = GENERATE(1, 2, 5);
  const std::int64_t count = GENERATE(0, 1, 3, 60);
  std::atomic<std::int64_t> made = 0;
  Prefetcher<std::unique_ptr<std::int64_t>> prefetcher(count, threads, depth, [&](std::int64_t number) {
    ++made;
    sleep_us((number * 7919) % 5 * 50);  // so that later items are often ready first
    return std::make_unique<std::int64_t>(number);
  });
  for (std::int64_t expected = 0; expected < count; ++expected) {
    const auto item = prefetcher.next();
    REQUIRE(item.has_value());
    REQUIRE(**item == expected);
  }
  REQUIRE(!prefetcher.next().has_value());
  REQUIRE(!prefetcher.next().has_value());
  REQUIRE(made == count);
}

TEST_CASE("no more than `depth` items are made ahead") {
  std::atomic<int> started = 0;
  Prefetcher<int> prefetcher(100, 4, 3, [&](std::int64_t) { return ++started; });
  const auto settles_at = [&](int number) {
    while (started < number) sleep_us(100);
    sleep_us(20000);  // time to overstep
    return started == number;
  };
  CHECK(settles_at(3));
  prefetcher.next();
  CHECK(settles_at(4));
}

TEST_CASE("what making throws is rethrown in its place, and ends the sequence") {
  const int threads = GENERATE(0, 1, 3);
  Prefetcher<int> prefetcher(50, threads, 4, [](std::int64_t number) {
    if (number == 5) fail("item {} is broken", number);
    return static_cast<int>(number);
  });
  for (int expected = 0; expected < 5; ++expected) REQUIRE(prefetcher.next() == expected);
  REQUIRE_THROWS_AS(prefetcher.next(), Error);
  REQUIRE(!prefetcher.next().has_value());
}

TEST_CASE("a prefetcher stops early, in every state") {
  const int threads = GENERATE(0, 1, 3);
  const int taken = GENERATE(0, 1, 4);
  std::atomic<int> in_work = 0;
  {
    Prefetcher<int> prefetcher(1000000, threads, 4, [&](std::int64_t number) {
      ++in_work;
      sleep_us(100);
      --in_work;
      if (number == 6) throw std::runtime_error("never seen");
      return 0;
    });
    for (int i = 0; i < taken; ++i) prefetcher.next();
  }
  CHECK(in_work == 0);
}

TEST_CASE("a prefetcher refuses what makes no sense") {
  const auto make = [](std::int64_t) { return 0; };
  CHECK_THROWS_AS(Prefetcher<int>(-1, 1, 1, make), Error);
  CHECK_THROWS_AS(Prefetcher<int>(1, -1, 1, make), Error);
  CHECK_THROWS_AS(Prefetcher<int>(1, 1, 0, make), Error);
}
