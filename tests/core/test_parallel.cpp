// parallel_for: covers the range once, carries exceptions out, nests, and its threads sleep when there is nothing to
// do.
#include "tandem/core/parallel.h"

#include "tandem/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/forked.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sys/resource.h>
#endif

using namespace tandem;
using namespace tandem::test;

namespace {

/// Puts num_threads() back when it goes.
class ThreadsRestored {
 public:
  ThreadsRestored() : before_(num_threads()) {}
  ~ThreadsRestored() { set_num_threads(before_); }
  ThreadsRestored(const ThreadsRestored&) = delete;
  ThreadsRestored& operator=(const ThreadsRestored&) = delete;

 private:
  int before_;
};

int count_parts(std::int64_t count) {
  std::atomic<int> parts = 0;
  parallel_for(count, 1, [&](std::int64_t, std::int64_t) { ++parts; });
  return parts;
}

}  // namespace

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

TEST_CASE("set_num_threads holds for the whole process, whichever thread calls it") {
  const ThreadsRestored restored;
  set_num_threads(3);
  int seen = 0, parts = 0;
  std::thread([&] {
    seen = num_threads();
    parts = count_parts(100);
    set_num_threads(5);
  }).join();
  CHECK(seen == 3);
  CHECK(parts == 3);
  CHECK(num_threads() == 5);
  CHECK(count_parts(100) == 5);
  set_num_threads(-1);
  CHECK(num_threads() == 1);
}

TEST_CASE("parts are cut by count and number of threads alone") {
  const ThreadsRestored restored;
  set_num_threads(3);
  for (int round = 0; round < 200; ++round) {
    std::array<std::int64_t, 3> begins{-1, -1, -1}, ends{};
    parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
      const auto part = static_cast<std::size_t>(begin * 3 / 99);
      begins[part] = begin;
      ends[part] = end;
    });
    REQUIRE(begins == std::array<std::int64_t, 3>{0, 33, 66});
    REQUIRE(ends == std::array<std::int64_t, 3>{33, 66, 100});
  }
}

TEST_CASE("all parts have ended when an exception comes out, and the next loop knows nothing of it") {
  const ThreadsRestored restored;
  set_num_threads(4);
  for (const std::int64_t failing : {0, 25, 75}) {
    std::atomic<int> begun = 0, ended = 0;
    CHECK_THROWS_AS(parallel_for(100, 1,
                                 [&](std::int64_t begin, std::int64_t) {
                                   ++begun;
                                   require(begin != failing, "part at {}", begin);
                                   std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                   ++ended;
                                 }),
                    Error);
    CHECK(begun == 4);
    CHECK(ended == 3);
    CHECK(count_parts(100) == 4);
  }
}

TEST_CASE("several threads may loop at once, and come and go") {
  const ThreadsRestored restored;
  set_num_threads(3);
  std::atomic<std::int64_t> sum = 0;
  const auto loop = [&] {
    for (int round = 0; round < 300; ++round) {
      parallel_for(30, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the crew falls asleep
    }
  };
  for (int generation = 0; generation < 3; ++generation) {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) callers.emplace_back(loop);
  }
  CHECK(sum == 3 * 4 * 300 * 30);
}

TEST_CASE("what sleeping or waking threads have not begun, the caller does") {
  const ThreadsRestored restored;
  set_num_threads(2);
  for (const int microseconds : {0, 10, 60, 200}) {
    for (int round = 0; round < 300; ++round) {
      std::array<int, 2> hits{};
      parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      REQUIRE(hits == std::array<int, 2>{1, 1});
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    }
  }
}

TEST_CASE("waiting threads leave the cores to others") {
  const ThreadsRestored restored;
  set_num_threads(2);
  constexpr int kRounds = 30;
  const std::clock_t before = std::clock();  // of all threads of this process
  for (int round = 0; round < kRounds; ++round) {
    REQUIRE(count_parts(2) == 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(used < 1e-3 * kRounds);  // seconds; a thread that spins all the while takes 4e-3 * kRounds
}

#if defined(__linux__) && !defined(__SANITIZE_THREAD__)  // the sanitizer ends a child that starts threads
TEST_CASE("loops work in a process made by fork, and in its parent after that") {
  const ThreadsRestored restored;
  set_num_threads(3);
  REQUIRE(count_parts(100) == 3);
  CHECK(exit_code_forked([] { return count_parts(100) == 3 && count_parts(100) == 3 ? 0 : 1; }) == 0);
  CHECK(count_parts(100) == 3);
}

TEST_CASE("a process made by fork ends, though it has made no loop of its own") {
  const ThreadsRestored restored;
  set_num_threads(3);
  REQUIRE(count_parts(100) == 3);
  const int code = exit_code_forked([]() -> int {
    static const struct AtExit {
      ~AtExit() { _exit(7); }
    } at_exit;
    std::exit(2);
  });
  CHECK(code == 7);
}

#ifndef __SANITIZE_ADDRESS__  // which needs address space itself
TEST_CASE("where the system gives no more threads, there are those that do all parts") {
  const ThreadsRestored restored;
  set_num_threads(3);
  REQUIRE(count_parts(100) == 3);
  const int code = exit_code_forked([] {
    std::vector<std::atomic<int>> visits(64);
    const rlimit no_more{1 << 20, 1 << 20};  // bytes of addresses: no stack of a thread fits in
    if (setrlimit(RLIMIT_AS, &no_more) != 0) return 2;
    set_num_threads(64);
    parallel_for(64, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    return std::all_of(visits.begin(), visits.end(), [](const auto& count) { return count == 1; }) ? 0 : 1;
  });
  CHECK(code == 0);
}
#endif

TEST_CASE("loops work while a process ends, and it ends") {
  const ThreadsRestored restored;
  set_num_threads(3);
  const int code = exit_code_forked([]() -> int {
    // Objects of threads are destroyed before those of the process.
    static const struct AtExit {
      ~AtExit() { _exit(count_parts(100) == 3 ? 7 : 1); }
    } at_exit;
    count_parts(100);
    std::exit(2);
  });
  CHECK(code == 7);
}
#endif
