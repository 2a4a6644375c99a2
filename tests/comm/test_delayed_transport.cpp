// Messages that are held up in real time.
#include "tandem/comm/transports/simulated/delayed_transport.h"
#include "tandem/comm/transports/threads/thread_network.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace tandem::comm;
using tandem::test::error_of;

namespace {

/// Ranks in this thread.
struct DelayedRanks {
  explicit DelayedRanks(const char* text) : model(parse_network_model(text)) {
    for (int rank = 0; rank < model.ranks(); ++rank)
      ranks.push_back(delay_messages(threads.transport(rank), rank, model));
  }

  ThreadNetwork threads;
  NetworkModel model;
  std::vector<std::unique_ptr<Transport>> ranks;
};

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// When it is done, having polled the others as well.
  double time_of(Transfer& transfer, const std::vector<Transfer*>& others = {}) const {
    while (!transfer.done()) {
      REQUIRE(seconds() < 10.0);
      for (Transfer* const other : others) other->done();
    }
    return seconds();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_CASE("messages take as long as on the network that is simulated") {
  const DelayedRanks network("alpha=20ms beta=1MB hosts=3");  // 10,000 bytes take 10 ms
  const std::vector<std::uint8_t> data(10000, 7);
  std::vector<std::uint8_t> at_one(10000), at_two(10000), at_one_too(10000);
  const Clock clock;
  const auto first = network.ranks[0]->send(1, 0, data.data(), 10000);
  const auto second = network.ranks[0]->send(2, 0, data.data(), 10000);
  const auto third = network.ranks[2]->send(1, 0, data.data(), 10000);
  const auto to_one = network.ranks[1]->receive(0, 0, at_one.data(), 10000);
  const auto to_two = network.ranks[2]->receive(0, 0, at_two.data(), 10000);
  const auto to_one_too = network.ranks[1]->receive(2, 0, at_one_too.data(), 10000);
  const std::vector<Transfer*> receives{to_one.get(), to_two.get(), to_one_too.get()};
  // A busy machine may take longer, never shorter.
  CHECK(clock.time_of(*first, receives) >= 0.010);
  CHECK(clock.time_of(*second, receives) >= 0.020);
  CHECK(clock.time_of(*to_one) >= 0.030);
  CHECK(clock.time_of(*to_two) >= 0.040);
  CHECK(clock.time_of(*to_one_too) >= 0.040);  // one after the other into rank 1
  CHECK(clock.time_of(*third) >= 0.010);
  CHECK((at_one == data && at_two == data && at_one_too == data));
}

TEST_CASE("a message that is still behind another on its sender's way holds up none that comes before it") {
  const DelayedRanks network("alpha=20ms beta=100KB hosts=3");
  const std::vector<std::uint8_t> data(50000, 7);
  std::vector<std::uint8_t> received(50000), late(1000), early(1000);
  const auto first = network.ranks[0]->send(1, 0, data.data(), 50000);  // takes half a second
  const auto behind = network.ranks[0]->send(2, 0, data.data(), 1000);
  const auto at_once = network.ranks[1]->send(2, 0, data.data(), 1000);
  const auto to_one = network.ranks[1]->receive(0, 0, received.data(), 50000);
  const auto from_behind = network.ranks[2]->receive(0, 0, late.data(), 1000);
  const auto from_at_once = network.ranks[2]->receive(1, 0, early.data(), 1000);
  CHECK(!from_behind->done());  // looks first
  const Clock clock;
  clock.time_of(*from_at_once);
  CHECK(!from_behind->done());
  CHECK(early.back() == 7);
}

TEST_CASE("messages within a simulated host are faster than those between hosts") {
  const DelayedRanks network("alpha=5s local-alpha=1us local-beta=1GB hosts=2x2");
  int sent = 7, near = 0, far = 0;
  const auto within = network.ranks[0]->send(1, 0, &sent, sizeof sent);
  const auto between = network.ranks[0]->send(2, 0, &sent, sizeof sent);
  const auto to_near = network.ranks[1]->receive(0, 0, &near, sizeof near);
  const auto to_far = network.ranks[2]->receive(0, 0, &far, sizeof far);
  const Clock clock;
  clock.time_of(*to_near, {to_far.get()});
  CHECK(near == 7);
  CHECK(!to_far->done());
}

TEST_CASE("groups of a simulated network keep its hosts") {
  const DelayedRanks network("alpha=20ms local-alpha=1us hosts=2x2");
  const std::vector<int> members{3, 1};
  const auto last = network.ranks[3]->subgroup(members), first = network.ranks[1]->subgroup(members);
  int sent = 7, received = 0;
  const Clock clock;
  const auto send = last->send(1, 0, &sent, sizeof sent);  // from rank 3 to rank 1
  const auto receive = first->receive(0, 0, &received, sizeof received);
  CHECK(clock.time_of(*receive) >= 0.020);
  CHECK(received == 7);
}

TEST_CASE("what is lost never comes") {
  const DelayedRanks network("alpha=1us hosts=2 lose=0-1");
  int sent = 7, received = 0;
  const Clock clock;
  const auto early = network.ranks[0]->send(1, 0, &sent, sizeof sent);
  clock.time_of(*network.ranks[1]->receive(0, 0, &received, sizeof received));
  CHECK(std::exchange(received, 0) == 7);  // nobody would notice before
  network.ranks[0]->begin_watched();
  const auto send = network.ranks[0]->send(1, 0, &sent, sizeof sent);
  const auto receive = network.ranks[1]->receive(0, 0, &received, sizeof received);
  clock.time_of(*send);
  const Clock since;
  while (since.seconds() < 0.02) CHECK(!receive->done());
  const auto back = network.ranks[1]->send(0, 0, &sent, sizeof sent);
  const auto other = network.ranks[0]->receive(1, 0, &received, sizeof received);
  clock.time_of(*other);
  CHECK(received == 7);
  network.threads.stop("rank 0 has ended");
  CHECK(error_of([&] { receive->done(); }) == "rank 0 has ended");
  CHECK(error_of([&] { network.ranks[1]->check(); }) == "rank 0 has ended");
}

TEST_CASE("what a transport's library does not take is not taken behind a simulated network either") {
  struct OneThread final : Transport {
    std::unique_ptr<Transfer> send(int, int, const void*, std::int64_t) override { return nullptr; }
    std::unique_ptr<Transfer> receive(int, int, void*, std::int64_t) override { return nullptr; }
    std::string thread_obstacle() const override { return "one thread at a time"; }
    std::unique_ptr<Transport> subgroup(std::span<const int>) override { return std::make_unique<OneThread>(); }
  };
  const NetworkModel model = parse_network_model("hosts=2");
  CHECK(delay_messages(std::make_unique<OneThread>(), 0, model)->thread_obstacle() == "one thread at a time");
}

TEST_CASE("networks that cannot be simulated in real time are refused") {
  ThreadNetwork threads;
  CHECK(error_of([&] { delay_messages(threads.transport(0), 0, parse_network_model("hosts=2 link=shared")); }) ==
        "network: link=shared is for a virtual clock; leave it out in real time");
  CHECK(error_of([&] { delay_messages(threads.transport(2), 2, parse_network_model("hosts=2")); }) ==
        "network: hosts=2x1 have no rank 2");
}
