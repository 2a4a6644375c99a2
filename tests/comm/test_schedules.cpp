// Collective algorithms, followed on symbols for every number of ranks; and that the check itself finds what is wrong.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/check_schedule.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <functional>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

constexpr int kMostRanks = 17;

const std::vector<std::pair<std::string, std::function<Schedule(int)>>> kAllReduces = {
    {"ring", ring_all_reduce},
    {"recursive-doubling", recursive_doubling},
    {"halving-doubling", halving_doubling},
    {"double-tree", double_binary_tree},
    {"direct", direct_all_reduce},
};

/// Ranks on hosts of the given sizes, one host after another.
std::vector<int> nodes_of(const std::vector<int>& sizes) {
  std::vector<int> nodes;
  for (std::size_t host = 0; host < sizes.size(); ++host)
    nodes.insert(nodes.end(), static_cast<std::size_t>(sizes[host]), static_cast<int>(10 * host));
  return nodes;
}

/// The first step of that action that `rank` takes.
Step& first_step(Schedule& schedule, int rank, Action action) {
  auto& steps = schedule.of_rank[static_cast<std::size_t>(rank)];
  const auto found = std::ranges::find(steps, action, &Step::action);
  REQUIRE(found != steps.end());
  return *found;
}

}  // namespace

TEST_CASE("every all-reduce combines each rank's elements once, in one order on all ranks") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const auto& [name, make] : kAllReduces) {
      const Schedule schedule = make(ranks);
      CHECK(schedule.name == name);
      CHECK_NOTHROW(check_schedule(schedule, all_reduce_goal(ranks, schedule.chunks)));
    }
  }
}

TEST_CASE("the two-level all-reduce is right on hosts of all sizes, and on ranks that take turns") {
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{1}, {4}, {1, 1, 1}, {2, 2}, {3, 1, 5}, {8, 8}, {1, 7}, {2, 3, 4, 5}}) {
    const Schedule schedule = two_level_all_reduce(nodes_of(sizes));
    CHECK(schedule.chunks == static_cast<int>(sizes.size()));
    CHECK_NOTHROW(check_schedule(schedule, all_reduce_goal(schedule.ranks, schedule.chunks)));
  }
  const auto check = [](const std::vector<int>& nodes) {
    const Schedule schedule = two_level_all_reduce(nodes);
    CHECK_NOTHROW(check_schedule(schedule, all_reduce_goal(static_cast<int>(nodes.size()), schedule.chunks)));
  };
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int hosts = 1; hosts <= ranks; ++hosts) {
      std::vector<int> in_turns, one_after_another;
      for (int rank = 0; rank < ranks; ++rank) {
        in_turns.push_back(rank % hosts);
        one_after_another.push_back(rank / hosts);  // of so many ranks each, the last one of what is left
      }
      INFO(ranks << " ranks, " << hosts << " hosts, or so many ranks on each");
      check(in_turns);
      check(one_after_another);
      std::ranges::reverse(one_after_another);
      check(one_after_another);
    }
  }
  CHECK_THAT(error_of([] { two_level_all_reduce({}); }), ContainsText("there are no ranks"));
}

TEST_CASE("the other collectives bring everything where it belongs, from and to every root") {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      CHECK_NOTHROW(check_schedule(binomial_broadcast(ranks, root), broadcast_goal(ranks, 1, root)));
      CHECK_NOTHROW(check_schedule(chain_broadcast(ranks, root), broadcast_goal(ranks, 1, root)));
      CHECK_NOTHROW(check_schedule(binomial_reduce(ranks, root), reduce_goal(ranks, 1, root)));
      CHECK_NOTHROW(check_schedule(direct_gather(ranks, root), gather_goal(ranks, root)));
      CHECK_NOTHROW(check_schedule(direct_scatter(ranks, root), scatter_goal(ranks, root)));
    }
    CHECK_NOTHROW(check_schedule(ring_all_gather(ranks), all_gather_goal(ranks)));
    CHECK_NOTHROW(check_schedule(direct_reduce_scatter(ranks), reduce_scatter_goal(ranks)));
    CHECK_NOTHROW(check_schedule(direct_all_to_all(ranks), all_to_all_goal(ranks)));
  }
}

TEST_CASE("algorithms send and last as their formulas say") {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    const std::int64_t total = 16 * 15 * 17 * 13 * 11 * 7 * 9;  // a multiple of all numbers of ranks
    const std::int64_t least = 2 * (ranks - 1) * total / ranks;
    const auto most_sent = [&](const Schedule& schedule) {
      std::int64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank) most = std::max(most, elements_sent(schedule, rank, total));
      return most;
    };
    CHECK(most_sent(ring_all_reduce(ranks)) == least);
    CHECK(rounds_of(ring_all_reduce(ranks)) == 2 * (ranks - 1));
    CHECK(most_sent(direct_all_reduce(ranks)) == least);
    // Half of the data up once and down twice in one tree, and up once in the other.
    CHECK(most_sent(double_binary_tree(ranks)) <= 2 * total);
    int levels = 0;
    while ((1 << levels) < ranks) ++levels;
    CHECK(rounds_of(double_binary_tree(ranks)) <= 2 * levels);
    CHECK(rounds_of(binomial_broadcast(ranks, 0)) == levels);
    if ((ranks & (ranks - 1)) != 0) continue;
    CHECK(most_sent(halving_doubling(ranks)) == least);
    CHECK(most_sent(recursive_doubling(ranks)) == levels * total);
  }
}

TEST_CASE("no rank but the first of an odd number has children in both trees of the double tree") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const Schedule schedule = double_binary_tree(ranks);
    for (int rank = ranks % 2; rank < ranks; ++rank) {
      bool is_parent[2] = {false, false};
      for (const Step& step : schedule.of_rank[static_cast<std::size_t>(rank)])
        is_parent[step.chunk] = is_parent[step.chunk] || step.action == Action::reduce;
      INFO("rank " << rank << " of " << ranks);
      CHECK(!(is_parent[0] && is_parent[1]));
    }
  }
}

TEST_CASE("the check names what a wrong schedule does wrong") {
  const auto error_of_ring = [](const std::function<void(Schedule&)>& damage) {
    Schedule schedule = ring_all_reduce(4);
    damage(schedule);
    return error_of([&] { check_schedule(schedule, all_reduce_goal(4, 4)); });
  };
  CHECK_THAT(error_of_ring([](Schedule&) {}), !ContainsText("schedule"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { first_step(ring, 2, Action::reduce).action = Action::receive; }),
             ContainsText("schedule ring of 4 ranks"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { ring.of_rank[1].pop_back(); }),
             ContainsText("rank 0 sends chunk 3 to rank 1, which does not receive it"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { first_step(ring, 3, Action::send).chunk = 0; }),
             ContainsText("rank 0, round 1, chunk 3: receives chunk 0 from rank 3"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { ring.of_rank[3].clear(); }), ContainsText("waits for ever for rank"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { first_step(ring, 0, Action::send).peer = 4; }),
             ContainsText("rank 0, round 1, chunk 0: the peer 4 or the chunk is out of range"));
  CHECK_THAT(error_of_ring([](Schedule& ring) { first_step(ring, 0, Action::receive).action = Action::reduce; }),
             ContainsText("would have elements of a rank twice"));
  Schedule doubling = recursive_doubling(4);
  for (auto& steps : doubling.of_rank)
    for (Step& step : steps) step.peer_is_left = false;
  CHECK_THAT(error_of([&] { check_schedule(doubling, all_reduce_goal(4, 1)); }),
             ContainsText("ranks 0 and 1 combine chunk 0 in different orders"));
  CHECK_THAT(error_of([] { check_schedule(direct_gather(3, 0), scatter_goal(3, 0)); }),
             ContainsText("sends what it does not have"));
  CHECK_THAT(error_of([] { check_schedule(ring_all_gather(3), all_gather_goal(4)); }),
             ContainsText("it is for 3 ranks and 3 chunks, the goal for 4 and 4"));
}

TEST_CASE("schedules as tables") {
  CHECK(to_text(ring_all_reduce(3)) ==
        "  1  0>1 c0+  1>2 c1+  2>0 c2+\n"
        "  2  0>1 c2+  1>2 c0+  2>0 c1+\n"
        "  3  0>1 c1  1>2 c2  2>0 c0\n"
        "  4  0>1 c0  1>2 c1  2>0 c2\n");
  CHECK(to_text(binomial_broadcast(1, 0)).empty());
}

TEST_CASE("chunks cover all elements, the larger ones first") {
  for (const std::int64_t total : {0, 1, 7, 16, 17}) {
    for (const int chunks : {1, 2, 5, 16}) {
      std::int64_t at = 0, before = total;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const ElementRange range = chunk_range(total, chunks, chunk);
        CHECK(range.begin == at);
        CHECK(range.count <= before);
        at += range.count;
        before = range.count;
      }
      CHECK(at == total);
    }
  }
}
