// Which ranks reach each other, some of whose messages do not arrive.
#include "tandem/comm/transports/connectivity.h"

#include "tandem/comm/transports/threads/thread_network.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <set>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;
using namespace std::chrono_literals;

namespace {

using Pairs = std::set<std::pair<int, int>>;

class NeverDone final : public Transfer {
  bool done() override { return false; }
};

/// One rank's messages; those between some pairs of ranks are lost, or an error at once.
class LosingTransport final : public Transport {
 public:
  LosingTransport(std::unique_ptr<Transport> inner, int rank, Pairs lost, bool throws)
      : inner_(std::move(inner)), rank_(rank), lost_(std::move(lost)), throws_(throws) {}
  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    if (!is_lost(to)) return inner_->send(to, tag, data, bytes);
    require(!throws_, "rank {} cannot be reached", to);
    return std::make_unique<NeverDone>();
  }
  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    if (is_lost(from)) return std::make_unique<NeverDone>();
    return inner_->receive(from, tag, data, bytes);
  }
  std::unique_ptr<Transport> subgroup(std::span<const int>) override { fail("not asked for"); }

 private:
  bool is_lost(int other) const { return lost_.contains(std::minmax(rank_, other)); }

  std::unique_ptr<Transport> inner_;
  int rank_;
  Pairs lost_;
  bool throws_;
};

/// What each rank finds, two on each host.
std::vector<Connectivity> probe(int ranks, const Pairs& lost, const ProbeOptions& options, bool throws = false) {
  const ThreadNetwork network;
  std::vector<Connectivity> found(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        auto transport = std::make_shared<LosingTransport>(network.transport(rank), rank, lost, throws);
        found[static_cast<std::size_t>(rank)] = probe_connectivity(transport,
                                                                   {rank, ranks,
                                                                    rank < 2   ? "alpha"
                                                                    : rank < 4 ? "beta"
                                                                               : "gamma",
                                                                    rank % 2},
                                                                   options);
      });
  }
  return found;
}

}  // namespace

TEST_CASE("ranks that reach each other are timed, pair by pair") {
  const auto found = probe(4, {}, {});
  for (const Connectivity& all : found) CHECK(all.is_complete());
  const Connectivity& all = found.front();
  CHECK(all.measured == std::vector{0, 1, 2, 3});
  for (const PairReport& pair : pairs_of(all)) {
    CHECK(pair.speed.seconds > 0.0);
    CHECK(pair.speed.bytes_per_second > 1e6);
  }
  CHECK(complaint_of(all).empty());
  const std::string text = text_of(all);
  CHECK_THAT(text, ContainsText("all ranks reach each other: ranks 0, 1 (host alpha), ranks 2, 3 (host beta)\n"));
  CHECK_THAT(text, ContainsText("  rank       0       1       2       3\n     0       - "));
  CHECK(std::ranges::count(text, '\n') == 13);
}

TEST_CASE("between many ranks the first ones of hosts are timed") {
  const auto found = probe(6, {}, {.most_ranks = 5});
  CHECK(found.front().measured == std::vector{0, 2, 4});
  CHECK_THAT(text_of(found.front()), ContainsText("between the first ranks of hosts:\n"));
  CHECK(pairs_of(found.front()).size() == 3);
}

TEST_CASE("ranks that do not reach each other are named by both, and all know of it in time") {
  const bool throws = GENERATE(false, true);
  const ProbeOptions options{.deadline = 300ms};
  const auto begin = std::chrono::steady_clock::now();
  const auto found = probe(6, {{0, 4}, {0, 5}, {1, 4}}, options, throws);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  for (const Connectivity& all : found) CHECK_FALSE(all.is_complete());
  CHECK(complaint_of(found[0], options) ==
        "rank 0 (host alpha) gets no answer from ranks 4, 5 (host gamma) within 0.3 s");
  CHECK(complaint_of(found[1], options) == "rank 1 (host alpha) gets no answer from rank 4 (host gamma) within 0.3 s");
  CHECK(complaint_of(found[2], options).empty());
  CHECK(complaint_of(found[4], options) ==
        "rank 4 (host gamma) gets no answer from ranks 0, 1 (host alpha) within 0.3 s");
  CHECK(text_of(found[0]) ==
        "not all ranks reach each other:\n"
        "  rank       0       1       2       3       4       5\n"
        "     0       -     yes     yes     yes      NO      NO\n"
        "     1     yes       -     yes     yes      NO     yes\n"
        "     2     yes     yes       -     yes     yes     yes\n"
        "     3     yes     yes     yes       -     yes     yes\n"
        "     4      NO      NO     yes     yes       -       ?\n"
        "     5      NO     yes     yes     yes       ?       -\n");
}

TEST_CASE("a rank that is cut off knows its own host alone") {
  const ProbeOptions options{.deadline = 200ms};
  const auto found = probe(3, {{0, 1}, {0, 2}}, options);
  CHECK(complaint_of(found[0], options) == "rank 0 (host alpha) gets no answer from ranks 1, 2 within 0.2 s");
  CHECK_THAT(text_of(found[0]), ContainsText("     1      NO       -       ?\n"));
  CHECK(complaint_of(found[2], options) == "rank 2 (host beta) gets no answer from rank 0 within 0.2 s");
}
