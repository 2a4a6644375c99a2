// parallel_for: covers the range once, carries exceptions out, nests.
#include "core/parallel.h"

#include "core/error.h"
#include "tests/support/catch.h"

#include <atomic>
#include <vector>

using namespace tandem;

TEST_CASE("parallel_for covers every index once for any count, grain and number of threads") {
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      for (const std::int64_t grain : {0, 1, 3, 5000}) {
        std::vector<int> hits(static_cast<std::size_t>(count));
        parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        CHECK(std::count(hits.begin(), hits.end(), 1) == count);
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("parts are no smaller than the grain") {
  const int before = num_threads();
  set_num_threads(4);
  std::atomic<int> parts = 0;
  parallel_for(100, 60, [&](std::int64_t, std::int64_t) { ++parts; });
  CHECK(parts <= 2);
  set_num_threads(before);
}

TEST_CASE("an exception in a part reaches the caller") {
  const int before = num_threads();
  set_num_threads(3);
  const auto run = [] {
    parallel_for(100, 1, [](std::int64_t begin, std::int64_t) { require(begin != 0, "part at {}", begin); });
  };
  REQUIRE_THROWS_AS(run(), Error);
  set_num_threads(before);
}

TEST_CASE("a parallel_for inside another does its work on the spot") {
  const int before = num_threads();
  set_num_threads(3);
  std::atomic<int> sum = 0;
  parallel_for(10, 1, [&](std::int64_t begin, std::int64_t end) {
    parallel_for(end - begin, 1, [&](std::int64_t inner_begin, std::int64_t inner_end) {
      sum += static_cast<int>(inner_end - inner_begin);
    });
  });
  CHECK(sum == 10);
  set_num_threads(before);
}
