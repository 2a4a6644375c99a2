// The ring's schedule, followed on paper: which rank's elements are in which chunk.
#include "tandem/comm/schedules/ring_schedule.h"

#include "tandem/core/error.h"
#include "tests/support/catch.h"

#include <set>

using namespace tandem;
using namespace tandem::comm;

namespace {

using Contributions = std::vector<int>;                  // how often each rank's elements are in a sum
using Chunks = std::vector<std::vector<Contributions>>;  // by rank, then by chunk

Chunks run_on_paper(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  Chunks chunks(n, std::vector<Contributions>(n, Contributions(n, 0)));
  for (std::size_t rank = 0; rank < n; ++rank) {
    for (std::size_t chunk = 0; chunk < n; ++chunk) chunks[rank][chunk][rank] = 1;
  }
  std::vector<std::vector<RingStep>> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(ring_schedule(ranks, rank));
  for (std::size_t step = 0; step < schedules.front().size(); ++step) {
    const Chunks before = chunks;
    for (std::size_t rank = 0; rank < n; ++rank) {
      const RingStep& entry = schedules[rank][step];
      const RingStep& sender = schedules[static_cast<std::size_t>(entry.receive_from)][step];
      CHECK(sender.send_to == static_cast<int>(rank));
      CHECK(sender.send_chunk == entry.receive_chunk);
      const auto chunk = static_cast<std::size_t>(entry.receive_chunk);
      const Contributions& received = before[static_cast<std::size_t>(entry.receive_from)][chunk];
      for (std::size_t i = 0; i < n; ++i) {
        chunks[rank][chunk][i] = received[i] + (entry.reduce ? before[rank][chunk][i] : 0);
      }
    }
  }
  return chunks;
}

}  // namespace

TEST_CASE("the ring adds every rank's elements exactly once, on every rank") {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    INFO("ranks " << ranks);
    const auto n = static_cast<std::size_t>(ranks);
    REQUIRE(ring_schedule(ranks, 0).size() == 2 * (n - 1));
    const Chunks chunks = run_on_paper(ranks);
    CHECK(chunks == Chunks(n, std::vector<Contributions>(n, Contributions(n, 1))));
  }
}

TEST_CASE("what a rank receives in one ring step it sends in the next") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto schedule = ring_schedule(ranks, rank);
      for (std::size_t step = 0; step + 1 < schedule.size(); ++step) {
        CHECK(schedule[step + 1].send_chunk == schedule[step].receive_chunk);
      }
    }
  }
}

TEST_CASE("chunks cover all elements in order and differ by at most one element") {
  for (const std::int64_t total : {0, 1, 2, 3, 7, 16, 17, 18, 1000, 1025}) {
    for (int chunks = 1; chunks <= 17; ++chunks) {
      std::int64_t next = 0;
      std::set<std::int64_t> sizes;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const ElementRange range = chunk_range(total, chunks, chunk);
        CHECK(range.begin == next);
        next += range.count;
        sizes.insert(range.count);
      }
      CHECK(next == total);
      CHECK(*sizes.rbegin() - *sizes.begin() <= 1);
    }
  }
}

TEST_CASE("a rank sends 2(n-1)/n of the elements") {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(ring_elements_sent(ranks * 1000, ranks, rank) == 2 * (ranks - 1) * 1000);
      sum += ring_elements_sent(1025, ranks, rank);
    }
    CHECK(sum == std::int64_t{2} * (ranks - 1) * 1025);
  }
}

TEST_CASE("the ring's schedule prints as a table") {
  CHECK(ring_schedule_table(3) ==
        "  1 reduce  0>1 c0  1>2 c1  2>0 c2\n"
        "  2 reduce  0>1 c2  1>2 c0  2>0 c1\n"
        "  3 copy    0>1 c1  1>2 c2  2>0 c0\n"
        "  4 copy    0>1 c0  1>2 c1  2>0 c2\n");
  CHECK(ring_schedule_table(1).empty());
}

TEST_CASE("a rank outside the ring is an error") {
  REQUIRE_THROWS_AS(ring_schedule(2, 2), Error);
  REQUIRE_THROWS_AS(ring_schedule(0, 0), Error);
}
