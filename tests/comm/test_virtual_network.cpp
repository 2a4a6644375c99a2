// Collectives on a simulated network take as long as the formulas say.
#include "tandem/comm/backends/native/virtual_ranks.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/memory.h"
#include "tandem/core/tensor.h"
#include "tests/comm/test_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

constexpr std::int64_t kAll = 1 << 20;

VirtualRanks virtual_ranks(const NetworkModel& model, const Schedule& all_reduce, const SegmentOptions& segments) {
  return VirtualRanks(model, std::make_shared<const Schedule>(all_reduce), segments);
}

/// Seconds of one collective of all ranks, in place.
double run(VirtualRanks& ranks, CollectiveKind kind, const std::vector<Tensor>& tensors) {
  return ranks.run([&](int rank) { return test::in_place(kind, tensors[static_cast<std::size_t>(rank)]); });
}

std::vector<Tensor> numbered_tensors(int ranks, std::int64_t count) {
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < ranks; ++rank) tensors.push_back(Tensor::full({count}, rank + 1.0));
  return tensors;
}

bool is_full_of(const Tensor& tensor, double value) {
  const std::vector<float> values = tensor.to_vector<float>();
  return std::ranges::all_of(values, [&](float element) { return element == static_cast<float>(value); });
}

/// Seconds of an all-reduce of so many floats, whose result is checked.
double all_reduce_seconds(const NetworkModel& model, const Schedule& schedule, std::int64_t count,
                          const SegmentOptions& segments) {
  VirtualRanks ranks = virtual_ranks(model, schedule, segments);
  const std::vector<Tensor> tensors = numbered_tensors(model.ranks(), count);
  const double seconds = run(ranks, CollectiveKind::all_reduce, tensors);
  const int sum = model.ranks() * (model.ranks() + 1) / 2;
  CHECK(std::ranges::all_of(tensors, [&](const Tensor& tensor) { return is_full_of(tensor, sum); }));
  return seconds;
}

/// Chunks travel as they are, however many at once.
double all_reduce_seconds(const NetworkModel& model, std::string_view algorithm, std::int64_t count) {
  const Schedule schedule = all_reduce_algorithm(algorithm).make(model.node_of_rank());
  const std::int64_t chunk_bytes = 4 * chunk_range(count, schedule.chunks, 0).count;
  return all_reduce_seconds(model, schedule, count, {.segment_bytes = chunk_bytes, .depth = kAll});
}

NetworkModel flat_network(int ranks) {
  NetworkModel model = parse_network_model(fmt::format("alpha=20us beta=10Gbit hosts={}", ranks));
  return model;
}

/// Of a broadcast from, or a reduction to, rank 0.
double collective_seconds(CollectiveKind kind, int ranks, std::int64_t count) {
  const NetworkModel model = flat_network(ranks);
  VirtualRanks group = virtual_ranks(model, ring_all_reduce(ranks), {.segment_bytes = 4 * count});
  const std::vector<Tensor> tensors = numbered_tensors(ranks, count);
  const double seconds = run(group, kind, tensors);
  if (kind == CollectiveKind::broadcast) {
    CHECK(std::ranges::all_of(tensors, [](const Tensor& tensor) { return is_full_of(tensor, 1); }));
  } else {
    CHECK(is_full_of(tensors.front(), ranks * (ranks + 1) / 2));
  }
  return seconds;
}

}  // namespace

TEST_CASE("a message takes the latency and its bytes, and waits for those before it") {
  VirtualNetwork network(flat_network(3));  // 1.25 bytes a nanosecond
  const auto a = network.transport(0), b = network.transport(1), c = network.transport(2);
  const std::vector<std::uint8_t> data(125000, 7);
  std::vector<std::uint8_t> at_b(125000), at_b_too(125000), at_c(125000);
  const auto first = a->send(1, 0, data.data(), 125000);   // its bytes take 100 us
  const auto second = a->send(2, 0, data.data(), 125000);  // behind them
  const auto third = c->send(1, 0, data.data(), 125000);   // meets the first at its end
  const auto to_b = b->receive(0, 0, at_b.data(), 125000), to_b_too = b->receive(2, 0, at_b_too.data(), 125000);
  const auto to_c = c->receive(0, 0, at_c.data(), 125000);
  const auto time_of = [&](Transfer& transfer) {
    while (!transfer.done()) REQUIRE(!network.advance().empty());
    return network.now();
  };
  CHECK(time_of(*first) == Approx(100e-6));
  CHECK(third->done());
  CHECK(!second->done());
  CHECK(time_of(*to_b) == Approx(120e-6));
  CHECK(!to_b_too->done());
  CHECK(time_of(*second) == Approx(200e-6));
  CHECK(time_of(*to_b_too) == Approx(220e-6));
  CHECK(to_c->done());
  CHECK((at_b == data && at_b_too == data && at_c == data));
  CHECK(network.advance().empty());
}

TEST_CASE("a message begins when it was sent and asked for") {
  VirtualNetwork network(flat_network(3));
  const auto a = network.transport(0), b = network.transport(1), c = network.transport(2);
  const std::vector<std::uint8_t> data(125000, 7);
  std::vector<std::uint8_t> at_b(125000), at_c(125000);
  const auto early = a->send(1, 3, data.data(), 125000);
  const auto other = a->send(2, 3, data.data(), 125000);  // does not wait for that one
  const auto to_c = c->receive(0, 3, at_c.data(), 125000);
  while (!network.advance().empty()) continue;
  CHECK(network.now() == Approx(120e-6));
  CHECK((other->done() && to_c->done() && !early->done()));
  CHECK(network.waiting() == "rank 0 has 125000 bytes for rank 1, which does not ask for them");
  const auto to_b = b->receive(0, 3, at_b.data(), 125000);
  while (!network.advance().empty()) continue;
  CHECK(network.now() == Approx(240e-6));
  CHECK((early->done() && to_b->done() && at_b == data && at_c == data));
}

TEST_CASE("memory of a message that was given up before it began is not touched any more") {
  VirtualNetwork network(flat_network(2));
  const auto a = network.transport(0), b = network.transport(1);
  const std::vector<std::uint8_t> data(1000, 7), zeros(1000);
  std::vector<std::uint8_t> at_b(1000);
  auto send = a->send(1, 0, data.data(), 1000), receive = b->receive(0, 0, at_b.data(), 1000);
  SECTION("by its receiver") {
    receive.reset();
    while (!network.advance().empty()) continue;
    CHECK(send->done());
    CHECK(network.waiting().empty());
  }
  SECTION("by its sender") {
    send.reset();
    while (!network.advance().empty()) continue;
    CHECK(!receive->done());
    CHECK(network.waiting() == "rank 1 waits for 1000 bytes from rank 0, which were lost");
  }
  SECTION("by both") {
    send.reset();
    receive.reset();
    while (!network.advance().empty()) continue;
    CHECK(network.waiting().empty());
  }
  CHECK(at_b == zeros);
}

TEST_CASE("all-reduces on a virtual clock take what their formulas say") {
  constexpr std::int64_t kCount = 624960;  // floats, which can be cut into so many equal parts
  const double bytes = 4.0 * kCount, alpha = 20e-6, beta = 1.0 / 1.25e9;
  for (const int ranks : {2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64}) {
    const NetworkModel model = flat_network(ranks);
    const double n = ranks, doublings = std::bit_width(static_cast<unsigned>(ranks)) - 1;
    const bool is_power = std::has_single_bit(static_cast<unsigned>(ranks));
    const double share = (n - 1.0) / n;
    CAPTURE(ranks);
    CHECK(all_reduce_seconds(model, "ring", kCount) ==
          Approx(2.0 * (n - 1.0) * (alpha + bytes / n * beta)).epsilon(0.01));
    CHECK(all_reduce_seconds(model, "direct", kCount) == Approx(2.0 * (alpha + share * bytes * beta)).epsilon(0.01));
    // The ranks beyond the power of two give away their data first, and get the result at the end.
    const double beyond = is_power ? 0.0 : 2.0 * (alpha + bytes * beta);
    CHECK(all_reduce_seconds(model, "recursive-doubling", kCount) ==
          Approx(doublings * (alpha + bytes * beta) + beyond).epsilon(0.01));
    const double power = std::exp2(doublings);
    CHECK(all_reduce_seconds(model, "halving-doubling", kCount) ==
          Approx(2.0 * (doublings * alpha + (power - 1.0) / power * bytes * beta) + beyond).epsilon(0.01));
  }
}

TEST_CASE("halving and doubling of short chunks take what their formula says, with the segments that are usual") {
  // Up to N/2 chunks go to a partner in a round.
  const double alpha = 50e-6, beta = 1.0 / 1.25e9;
  for (const int ranks : {8, 16, 32, 64}) {
    NetworkModel model = parse_network_model("alpha=50us beta=10Gbit");
    model.hosts = ranks;
    const double n = ranks, formula_alpha = 2.0 * std::log2(n) * alpha, share = 2.0 * (n - 1.0) / n * beta;
    const Schedule schedule = halving_doubling(ranks);
    for (const std::int64_t bytes : {ranks * 4, ranks * 64, 65536, 262144, 1 << 20}) {
      CAPTURE(ranks, bytes);
      const double seconds = all_reduce_seconds(model, schedule, bytes / 4, {});
      const double formula = formula_alpha + share * static_cast<double>(bytes);
      // A little less, where a chunk goes on while others of its round are still on their way.
      CHECK((seconds < 1.01 * formula && seconds > 0.95 * formula));
      CHECK(predicted_seconds(schedule, model.node_of_rank(), bytes, costs_of(model)) == Approx(seconds).epsilon(0.05));
    }
  }
}

TEST_CASE("binomial trees on a virtual clock take what their formulas say") {
  constexpr std::int64_t kCount = 100000;
  for (const int ranks : {2, 4, 16, 64}) {
    const double levels = std::bit_width(static_cast<unsigned>(ranks - 1)), message = 20e-6 + 4.0 * kCount / 1.25e9;
    CAPTURE(ranks);
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce})
      CHECK(collective_seconds(kind, ranks, kCount) == Approx(levels * message).epsilon(0.01));
  }
}

TEST_CASE("small messages are asked for before those of earlier rounds have come") {
  // Of 7 ranks none is more than two messages away from the root; two of these come to one rank at once.
  const double bytes = 4.0 * 1024 / 1.25e9;
  CHECK(collective_seconds(CollectiveKind::reduce, 7, 1024) == Approx(2.0 * (20e-6 + bytes) + bytes).epsilon(0.01));
  // Many small chunks go to each rank: more than may be on their way at once.
  const Schedule halving = halving_doubling(64);
  CHECK(all_reduce_seconds(parse_network_model("alpha=50us beta=10Gbit hosts=8x8"), halving, 1024, {}) < 1e-3);
}

TEST_CASE("two binary trees take little more than the time of twice the data on a virtual clock") {
  // The formula is of messages that never queue up. Here those of the ways up and down do.
  constexpr std::int64_t kCount = 1 << 20;
  for (const int ranks : {4, 7, 16, 64}) {
    const NetworkModel model = flat_network(ranks);
    const Schedule schedule = all_reduce_algorithm("double-tree").make(model.node_of_rank());
    const double formula = 4.0 * std::log2(ranks) * 20e-6 + 2.0 * 4.0 * kCount / 1.25e9;
    const double seconds = all_reduce_seconds(model, schedule, kCount, {.segment_bytes = 16 << 10, .depth = 4});
    CAPTURE(ranks);
    CHECK((seconds > 0.97 * formula && seconds < 1.15 * formula));
  }
}

TEST_CASE("two levels take the time of trees within hosts and a ring between them") {
  constexpr double kBytes = 4 << 20;
  for (const auto& [hosts, each] : {std::pair{2, 1}, {2, 2}, {4, 3}, {4, 4}, {8, 8}}) {
    const NetworkModel model = parse_network_model(
        fmt::format("alpha=20us beta=10Gbit local-alpha=2us local-beta=4GB hosts={}x{}", hosts, each));
    const Schedule schedule = all_reduce_algorithm("two-level").make(model.node_of_rank());
    const double levels = std::bit_width(static_cast<unsigned>(each - 1));
    CAPTURE(hosts, each);
    CHECK(all_reduce_seconds(model, schedule, 1 << 20, {.segment_bytes = 4 << 20}) ==
          Approx(2.0 * levels * (2e-6 + kBytes / 4e9) + 2.0 * (hosts - 1) * (20e-6 + kBytes / hosts / 1.25e9))
              .epsilon(0.01));
  }
}

TEST_CASE("what is predicted between hosts is what the virtual clock says, however long latencies are") {
  for (const char* const text :
       {"alpha=2ms beta=1Gbit hosts=2", "alpha=10us beta=1Gbit hosts=2", "alpha=2ms beta=1Gbit hosts=4"}) {
    const NetworkModel model = parse_network_model(text);
    for (const char* const algorithm : {"ring", "recursive-doubling"}) {
      const Schedule schedule = all_reduce_algorithm(algorithm).make(model.node_of_rank());
      for (const std::int64_t count : {1000, 93440, 373760, 1000000}) {
        CAPTURE(text, algorithm, count);
        CHECK(predicted_seconds(schedule, model.node_of_rank(), 4 * count, costs_of(model)) ==
              Approx(all_reduce_seconds(model, schedule, count, {})).epsilon(0.05));
      }
    }
  }
}

TEST_CASE("predictions between many hosts know turns, and ways that are taken in the order of leaving") {
  for (const int hosts : {4, 8, 12, 32, 64}) {
    NetworkModel model = parse_network_model("alpha=100us beta=2.5Gbit");
    model.hosts = hosts;
    for (const char* const algorithm : {"ring", "recursive-doubling", "halving-doubling", "direct"}) {
      const Schedule schedule = all_reduce_algorithm(algorithm).make(model.node_of_rank());
      for (const std::int64_t count : {1000, 102912, 500234}) {
        CAPTURE(hosts, algorithm, count);
        CHECK(predicted_seconds(schedule, model.node_of_rank(), 4 * count, costs_of(model)) ==
              Approx(all_reduce_seconds(model, schedule, count, {})).epsilon(0.05));
      }
    }
  }
}

TEST_CASE("segments of a chunk follow each other round a ring, and hide the latency") {
  const double kSegment = 16384 / 1.25e9;   // 13 us, so that eight of them take longer than a message
  const std::int64_t count = 8 * 8 * 4096;  // 8 ranks, each with a chunk of 8 segments
  CHECK(all_reduce_seconds(flat_network(8), ring_all_reduce(8), count, {.segment_bytes = 16384}) ==
        Approx(14.0 * 8.0 * kSegment + 20e-6).epsilon(0.01));
}

TEST_CASE("small all-reduces take little memory, however long segments may be") {
  constexpr int kRanks = 16;
  const std::vector<Tensor> tensors = numbered_tensors(kRanks, 3);
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    CAPTURE(algorithm.name);
    const std::vector<int> nodes(kRanks, 0);
    VirtualRanks ranks = virtual_ranks(flat_network(kRanks), algorithm.make(nodes), {.segment_bytes = 1 << 20});
    reset_peak_memory();
    const std::int64_t before = memory_stats().current_total;
    run(ranks, CollectiveKind::all_reduce, tensors);
    CHECK(memory_stats().peak_total - before < kRanks * 4096);
  }
}

TEST_CASE("ranks that share the link of their host wait for each other") {
  NetworkModel model = parse_network_model("alpha=20us beta=10Gbit local-alpha=0s local-beta=1TB hosts=2x4");
  const Schedule ring = ring_all_reduce(8);
  const auto seconds = [&] { return all_reduce_seconds(model, ring, 1 << 20, {.segment_bytes = 4 << 20}); };
  // A ring crosses the link once in each direction.
  const double own = seconds();
  model.is_link_shared = true;
  CHECK(seconds() == Approx(own));
  // Of all pairs, 16 are on different hosts.
  const double bytes = 4 << 20;
  CHECK(all_reduce_seconds(model, direct_all_reduce(8), 1 << 20, {.segment_bytes = 4 << 20}) ==
        Approx(2.0 * (20e-6 + 16.0 * bytes / 8.0 / 1.25e9)).epsilon(0.01));
}

TEST_CASE("a simulated network takes the same time in every run, with jitter more") {
  NetworkModel model = flat_network(16);
  const auto seconds = [&](const char* algorithm) { return all_reduce_seconds(model, algorithm, 100000); };
  for (const char* algorithm : {"ring", "halving-doubling", "double-tree"}) {
    model.jitter = 0.0;
    const double without = seconds(algorithm);
    CHECK(seconds(algorithm) == without);
    model.jitter = 50e-6;
    const double with = seconds(algorithm);
    CHECK(with > without + 20e-6);
    CHECK(seconds(algorithm) == with);
    ++model.seed;
    CHECK(seconds(algorithm) != with);
  }
}

TEST_CASE("a lost link is named, with who waits for it") {
  NetworkModel model = flat_network(4);
  model.lost.push_back({1, 2, 100e-6});
  CHECK(error_of([&] { all_reduce_seconds(model, "ring", 4000); }) ==
        "simulated network: after 0.0001392 s nothing is on its way any more: rank 2 waits for 4000 bytes from rank 1, "
        "which were lost");
}

TEST_CASE("segments that were lost on one link are named once") {
  NetworkModel model = flat_network(2);
  model.lost.push_back({0, 1, 0.0});
  CHECK_THAT(
      error_of([&] { all_reduce_seconds(model, ring_all_reduce(2), 2048, {.segment_bytes = 1024, .depth = 3}); }),
      ContainsText(" nothing is on its way any more: rank 1 waits for 3 messages of 3072 bytes in all from rank 0, "
                   "which were lost"));
}

TEST_CASE("a simulated network refuses ranks that it does not have, and lengths that differ") {
  CHECK(error_of([] { VirtualNetwork{NetworkModel{}}; }) ==
        "a network on a virtual clock needs its ranks: hosts=8x8, or hosts=16");
  const VirtualNetwork network(flat_network(2));
  CHECK(error_of([&] { network.transport(2); }) == "a simulated network of 2 ranks has no rank 2");
  const auto a = network.transport(0), b = network.transport(1);
  int data = 0;
  CHECK(error_of([&] { a->send(-1, 0, &data, 4); }) == "a simulated network of 2 ranks has no rank -1");
  const auto receive = b->receive(0, 0, &data, 2);
  CHECK(error_of([&] { a->send(1, 0, &data, 4); }) == "a message of 4 bytes from rank 0, and rank 1 expects 2");
}
