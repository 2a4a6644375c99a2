// Clocks of ranks that are threads, each with an error of its own.
#include "tandem/comm/clock_offsets.h"

#include "tandem/comm/backends/backend.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <chrono>
#include <cstdlib>
#include <vector>

using namespace tandem;
using namespace tandem::comm;

namespace {

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Rank r's clock is `error * r` ahead.
std::vector<ClockOffset> offsets_of(int ranks, std::int64_t error_ns) {
  std::vector<ClockOffset> offsets(static_cast<std::size_t>(ranks));
  test::run_thread_ranks(ranks, [&](ProcessGroup& group) {
    const int rank = group.rank();
    offsets[static_cast<std::size_t>(rank)] =
        compare_clocks(group, [rank, error_ns] { return steady_ns() + rank * error_ns; });
  });
  return offsets;
}

}  // namespace

TEST_CASE("clocks: the error of a rank's clock is found within the uncertainty that is told") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (const std::int64_t error : {5 * kSecond, -3 * kSecond}) {
    const std::vector<ClockOffset> offsets = offsets_of(4, error);
    for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
      INFO("rank " << rank << ": " << offsets[rank].offset_ns << " +- " << offsets[rank].uncertainty_ns);
      const std::int64_t true_offset = -static_cast<std::int64_t>(rank) * error;
      CHECK(std::abs(offsets[rank].offset_ns - true_offset) <= offsets[rank].uncertainty_ns);
      CHECK(offsets[rank].uncertainty_ns < kSecond / 10);
      CHECK((rank == 0) == (offsets[rank].uncertainty_ns == 0));
    }
  }
}

TEST_CASE("clocks: ranks of one host that share a clock have no offset") {
  for (const ClockOffset& offset : offsets_of(3, 0)) CHECK(offset.offset_ns == 0);
  ProcessGroup alone(make_self_backend());
  const std::int64_t before = steady_ns();
  const ClockOffset offset = compare_clocks(alone);
  CHECK((offset.offset_ns == 0 && offset.uncertainty_ns == 0));
  CHECK((offset.at_ns >= before && offset.at_ns <= steady_ns()));
}

TEST_CASE("clocks: between two comparisons a clock is taken to run evenly") {
  CHECK(time_of_rank_0({}, 77) == 77);
  const std::vector<ClockOffset> once{{1000, 50, 3}};
  CHECK((time_of_rank_0(once, 0) == 50 && time_of_rank_0(once, 5000) == 5050));
  const std::vector<ClockOffset> twice{{1000, 50, 3}, {2000, 150, 3}};
  CHECK(time_of_rank_0(twice, 0) == 50);
  CHECK(time_of_rank_0(twice, 1000) == 1050);
  CHECK(time_of_rank_0(twice, 1500) == 1600);
  CHECK(time_of_rank_0(twice, 2000) == 2150);
  CHECK(time_of_rank_0(twice, 3000) == 3150);
}
