// Cost curves, predictions against the formulas of the textbooks, and what is chosen by them.
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::comm;
using Catch::Matchers::WithinRel;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

constexpr double kLatency = 20e-6, kRate = 1e9, kCombining = 4e9;  // seconds, bytes per second

/// The model of the textbooks: alpha + n beta a message, gamma a byte that is combined, and nothing else.
MessageCosts textbook_costs() {
  return {.start = 0.0,
          .overhead = 0.0,
          .within_host = CostCurve::line(kLatency, kRate),
          .between_hosts = CostCurve::line(kLatency, kRate),
          .combine = CostCurve::line(0.0, kCombining),
          .shared_cores = 0};
}

double message(double bytes) { return kLatency + bytes / kRate; }
double combining(double bytes) { return bytes / kCombining; }

/// Each rank on a host of its own.
std::vector<int> hosts(int ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank);
  return nodes;
}

/// Chunks are not cut, and all that is ready is sent.
constexpr SegmentOptions kWhole{.segment_bytes = std::int64_t{1} << 40, .depth = 1000};

double predicted(const Schedule& schedule, std::int64_t bytes, const SegmentOptions& segments = kWhole) {
  return predicted_seconds(schedule, hosts(schedule.ranks), bytes, textbook_costs(), segments);
}

}  // namespace

TEST_CASE("a cost curve is straight between its points, and goes on behind the last") {
  const CostCurve curve({{100, 1.0}, {200, 2.0}, {400, 6.0}});
  CHECK(curve.at(0) == 1.0);
  CHECK(curve.at(100) == 1.0);
  CHECK(curve.at(150) == 1.5);
  CHECK(curve.at(200) == 2.0);
  CHECK(curve.at(300) == 4.0);
  CHECK(curve.at(500) == 8.0);
  CHECK(CostCurve().at(1000) == 0.0);
  CHECK(CostCurve({{5, 3.0}}).at(1000) == 3.0);
  CHECK_THAT(CostCurve::line(1e-6, 2e9).at(4000), WithinRel(3e-6, 1e-12));
  CHECK_THAT(CostCurve::line(1e-6, 2e9).at(std::int64_t{1} << 40), WithinRel(1e-6 + std::ldexp(1.0, 40) / 2e9, 1e-9));
}

TEST_CASE("a cost curve that descends, or is of no numbers, is refused") {
  CHECK_THAT(error_of([] { CostCurve({{10, 1.0}, {10, 2.0}}); }), ContainsText("both must ascend"));
  CHECK_THAT(error_of([] { CostCurve({{10, 1.0}, {20, 0.5}}); }), ContainsText("both must ascend"));
  CHECK_THAT(error_of([] { CostCurve({{-1, 1.0}}); }), ContainsText("-1 bytes"));
  CHECK_THAT(error_of([] { CostCurve({{1, std::nan("")}}); }), ContainsText("nan s"));
  CHECK_THAT(error_of([] { CostCurve({{1, std::numeric_limits<double>::infinity()}}); }), ContainsText("inf s"));
  CHECK_THAT(error_of([] { CostCurve::line(0.0, 0.0); }), ContainsText("0 bytes per second"));
}

TEST_CASE("predictions of the ring, doubling and halving are those of the textbooks") {
  for (const int n : {2, 4, 8, 16}) {
    const std::int64_t bytes = 16 * 1000 * 3;  // every chunk is of one size
    const auto s = static_cast<double>(bytes), ranks = static_cast<double>(n), rounds = std::log2(ranks);
    INFO(n << " ranks");
    CHECK_THAT(predicted(ring_all_reduce(n), bytes),
               WithinRel((ranks - 1) * (2 * message(s / ranks) + combining(s / ranks)), 1e-9));
    CHECK_THAT(predicted(recursive_doubling(n), bytes), WithinRel(rounds * (message(s) + combining(s)), 1e-9));
  }
  // Halves, then quarters: 2 log2(N) messages where one chunk goes a round, and as many bytes as the ring.
  CHECK_THAT(predicted(halving_doubling(2), 8000), WithinRel(2 * message(4000) + combining(4000), 1e-9));
}

TEST_CASE("a prediction is at least the time of the bytes that a rank must send and combine") {
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    for (const int n : {2, 3, 5, 8, 13}) {
      for (const std::int64_t bytes : {4, 1000, 123456, 5000000}) {
        const double seconds = predicted(algorithm.make(hosts(n)), bytes, {});
        const double share = static_cast<double>(bytes) * (n - 1) / n;
        INFO(algorithm.name << ", " << n << " ranks, " << bytes << " bytes");
        CHECK(std::isfinite(seconds));
        CHECK(seconds >= 2 * kLatency / 2 + 2 * share / kRate / 2);
      }
    }
  }
}

TEST_CASE("every step of a schedule is part of its prediction, also of uneven chunks and of none") {
  // Nothing but latency: rounds tell.
  MessageCosts latency_only;
  latency_only.between_hosts = CostCurve({{0, 1.0}});
  for (const int n : {2, 3, 4, 7})
    CHECK(predicted_seconds(ring_all_reduce(n), hosts(n), n, latency_only) == 2.0 * (n - 1));
  CHECK(predicted_seconds(ring_all_reduce(4), hosts(4), 0, latency_only) == 0.0);  // no message at all
  CHECK(predicted_seconds(ring_all_reduce(1), hosts(1), 1000, latency_only) == 0.0);
  latency_only.start = 0.25;
  CHECK(predicted_seconds(ring_all_reduce(3), hosts(3), 3, latency_only) == 4.25);
}

TEST_CASE("latencies are kept however long the data are, in segments of any size") {
  for (const std::int64_t bytes : {1 << 10, 128 << 10, 256 << 10, 1 << 20, 8 << 20}) {
    const Schedule ring = ring_all_reduce(64);
    MessageCosts costs = textbook_costs();
    costs.between_hosts = CostCurve::line(1e-3, 10e9);
    const double seconds = predicted_seconds(ring, hosts(64), bytes, costs);
    INFO(bytes << " bytes");
    CHECK(seconds >= 126 * 1e-3);
    CHECK(seconds <= 126 * 1e-3 * 1.2);
  }
}

TEST_CASE("what is no cost, no size and no schedule is refused") {
  const Schedule ring = ring_all_reduce(2);
  const auto with = [&](const MessageCosts& costs, std::int64_t bytes, const SegmentOptions& segments) {
    return error_of([&] { predicted_seconds(ring, hosts(2), bytes, costs, segments); });
  };
  const MessageCosts good = textbook_costs();
  MessageCosts bad = good;
  bad.start = std::nan("");
  CHECK_THAT(with(bad, 4, {}), ContainsText("a collective starts in nan s"));
  bad = good;
  bad.overhead = -1.0;
  CHECK_THAT(with(bad, 4, {}), ContainsText("keeps a rank busy for -1 s"));
  bad = good;
  bad.shared_cores = -1;
  CHECK_THAT(with(bad, 4, {}), ContainsText("share -1 cores"));
  CHECK_THAT(with(good, -4, {}), ContainsText("-4 bytes"));
  CHECK_THAT(with(good, 4, {.segment_bytes = 0}), ContainsText("4 segments of 0 bytes"));
  CHECK_THAT(with(good, 4, {.depth = 0}), ContainsText("0 segments of"));
  CHECK_THAT(error_of([] { CostCurve({{0, 1e307}, {1, 1e308}}); }), ContainsText("1e+307 s"));
  Schedule lonely = ring;
  lonely.of_rank[1].clear();  // who never sends
  CHECK_THAT(error_of([&] { predicted_seconds(lonely, hosts(2), 4, good); }), ContainsText("wait for each other"));
}

TEST_CASE("costs come back from their text") {
  const MessageCosts costs{
      .start = 1.0 / 3.0,
      .overhead = 1e-7,
      .within_host = CostCurve({{4, 1e-6 / 3.0}}),
      .between_hosts = CostCurve({{0, 0.0}, {1 << 30, 0.1}}),
      .combine = {},
      .shared_cores = 12,
      .corrections = {{.algorithm = "ring", .ranks = 2, .hosts = 1, .points = {{1024, 1.0 / 3.0}, {4096, 2.0}}},
                      {.algorithm = "double-tree", .ranks = 2, .hosts = 1}}};
  CHECK(message_costs_from_text(to_text(costs)) == costs);
  for (const std::string& text : {std::string(), std::string("1 2"), to_text(costs) + " 3", std::string("0 0 0 1 4 x")})
    CHECK_THAT(error_of([&] { message_costs_from_text(text); }), ContainsText("are no message costs"));
}

TEST_CASE("messages within a host and between hosts have costs of their own") {
  MessageCosts costs;
  costs.within_host = CostCurve({{0, 1.0}});
  costs.between_hosts = CostCurve({{0, 100.0}});
  CHECK(predicted_seconds(recursive_doubling(2), std::vector{7, 7}, 4, costs) == 1.0);
  CHECK(predicted_seconds(recursive_doubling(2), std::vector{7, 8}, 4, costs) == 100.0);
  CHECK_THAT(error_of([&] { predicted_seconds(recursive_doubling(2), std::vector{7}, 4, costs); }),
             ContainsText("hosts of 1 ranks for a schedule of 2"));
}

TEST_CASE("ranks that share cores take turns, and are faster while others wait") {
  MessageCosts costs;
  costs.within_host = CostCurve({{0, 0.0}, {4, 1.0}});  // while all ranks exchanged at once
  const std::vector<int> one_host(4, 0);
  const auto seconds = [&](const Schedule& schedule, int cores) {
    costs.shared_cores = cores;
    return predicted_seconds(schedule, one_host, 4, costs);
  };
  // All are at work all the time: the same.
  CHECK_THAT(seconds(ring_all_reduce(4), 0), WithinRel(1.5, 1e-9));  // 6 rounds of a byte each
  CHECK_THAT(seconds(ring_all_reduce(4), 1), WithinRel(1.5, 1e-9));
  CHECK_THAT(seconds(ring_all_reduce(4), 4), WithinRel(1.5, 1e-9));
  // One after another: each has a core to itself, which did half of the work of two in that time.
  CHECK_THAT(seconds(chain_broadcast(4, 0), 0), WithinRel(3.0, 1e-9));
  CHECK_THAT(seconds(chain_broadcast(4, 0), 2), WithinRel(1.5, 1e-9));
  CHECK_THAT(seconds(chain_broadcast(4, 0), 1), WithinRel(0.75, 1e-9));
}

TEST_CASE("of what a rank was ready for at one time, it sends first") {
  // A message takes half a second of the sender and half of the receiver, a byte that is combined one second. Of 15
  // bytes rank 1 combines segments of 4 and 4 until 10, and rank 0 segments of 4 and 3 until 9. Rank 0 sends back until
  // 10, its first segment by 9.5. Rank 1 sends its first one until 10.5 and receives that of rank 0 until 11. It has
  // been ready since 10 to send its second one, and to receive that of rank 0: it sends until 11.5, so that both
  // receive until 12.
  MessageCosts costs;
  costs.overhead = 1.0;
  costs.within_host = CostCurve({{0, 1.0}});
  costs.combine = CostCurve::line(0.0, 1.0);
  CHECK(predicted_seconds(ring_all_reduce(2), std::vector{0, 0}, 15, costs, {.segment_bytes = 4, .depth = 4}) == 12.0);
}

TEST_CASE("segments overlap: a chain of many ranks takes little longer than one message") {
  const std::int64_t bytes = 10'000'000;
  MessageCosts costs = textbook_costs();
  costs.between_hosts = CostCurve::line(0.0, kRate);
  const double whole = predicted_seconds(chain_broadcast(6, 0), hosts(6), bytes, costs, kWhole);
  const double cut =
      predicted_seconds(chain_broadcast(6, 0), hosts(6), bytes, costs, {.segment_bytes = bytes / 100, .depth = 4});
  CHECK_THAT(whole, WithinRel(5 * 0.01, 1e-9));
  CHECK(cut < 0.012);
  // One hop within a host: while a segment is received, the next is sent, unless one at a time may be on its way.
  // Between hosts bytes are no faster than their way.
  costs.within_host = costs.between_hosts;
  const auto hop = [&](std::vector<int> nodes, std::int64_t depth) {
    return predicted_seconds(chain_broadcast(2, 0), nodes, bytes, costs,
                             {.segment_bytes = bytes / 100, .depth = depth});
  };
  CHECK_THAT(hop({0, 0}, 4), WithinRel(0.01 * 101 / 200, 1e-9));
  CHECK_THAT(hop({0, 0}, 1), WithinRel(0.01, 1e-9));
  CHECK_THAT(hop({0, 1}, 4), WithinRel(0.01, 1e-9));
}

TEST_CASE("small data go in few rounds, large data in few bytes") {
  // Of latency alone: two rounds, in which each rank sends to all others at once.
  CHECK(choose_algorithms(hosts(8), textbook_costs()).front().algorithm == "direct");
  // So many messages at once hold each other up, which predictions do not know.
  CHECK(choose_algorithms(hosts(9), textbook_costs()).front().algorithm != "direct");
  MessageCosts costs = textbook_costs();
  costs.overhead = kLatency;  // messages one after another
  const std::vector<AlgorithmChoice> choices = choose_algorithms(hosts(8), costs);
  REQUIRE(choices.size() >= 2);
  CHECK(choices.front() == AlgorithmChoice{0, "recursive-doubling"});
  CHECK(choices.back().algorithm != "recursive-doubling");
  for (const AlgorithmChoice& choice : choices) {
    // Where it begins, what was chosen is the best.
    const std::int64_t bytes = std::max<std::int64_t>(4, choice.from_bytes / 3 * 4);
    double least = 1e9, chosen = 0.0;
    for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
      const double seconds = predicted_seconds(algorithm.make(hosts(8)), hosts(8), bytes, costs);
      least = std::min(least, seconds);
      if (algorithm.name == choice.algorithm) chosen = seconds;
    }
    CHECK(chosen == least);
  }
}

TEST_CASE("a correction is straight over the logarithm of the size, and holds beyond its points") {
  const Correction correction{
      .algorithm = "ring", .ranks = 2, .hosts = 1, .points = {{16, 1.0}, {256, 3.0}, {512, 2.0}}};
  CHECK(correction.at(0) == 1.0);
  CHECK(correction.at(16) == 1.0);
  CHECK(correction.at(64) == 2.0);
  CHECK(correction.at(256) == 3.0);
  CHECK_THAT(correction.at(362), WithinRel(2.5, 1e-3));
  CHECK(correction.at(512) == 2.0);
  CHECK(correction.at(1 << 20) == 2.0);
  CHECK(Correction{.algorithm = "ring", .ranks = 2, .hosts = 1}.at(5) == 1.0);
  const auto error = [](const Correction& wrong) { return error_of([&] { check_correction(wrong); }); };
  CHECK(error(correction) == "no error");
  CHECK_THAT(error({.algorithm = "rings", .ranks = 2, .hosts = 1}), ContainsText("did you mean ring?"));
  CHECK_THAT(error({.algorithm = "ring", .ranks = 0, .hosts = 1}), ContainsText("of 0 ranks on 1 hosts"));
  CHECK_THAT(error({.algorithm = "ring", .ranks = 2, .hosts = -1}), ContainsText("of 2 ranks on -1 hosts"));
  for (const std::int64_t first : {0, -8, 512})
    CHECK_THAT(error({.algorithm = "ring", .ranks = 2, .hosts = 1, .points = {{first, 1.0}, {512, 1.0}}}),
               ContainsText("sizes must ascend from 1 or more"));
  for (const double factor : {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(error({.algorithm = "ring", .ranks = 2, .hosts = 1, .points = {{512, factor}}}),
               ContainsText("times as long for 512 bytes"));
}

TEST_CASE("predictions are corrected by what was measured of that algorithm, as many ranks and hosts") {
  MessageCosts costs = textbook_costs();
  costs.corrections = {{.algorithm = "ring", .ranks = 4, .hosts = 4, .points = {{1 << 10, 3.0}, {1 << 20, 1.0}}}};
  const std::vector<int> one_host(4, 0);
  const auto factor = [&](const Schedule& schedule, std::span<const int> nodes, std::int64_t bytes) {
    return predicted_seconds(schedule, nodes, bytes, costs) /
           predicted_seconds(schedule, nodes, bytes, textbook_costs());
  };
  CHECK_THAT(factor(ring_all_reduce(4), hosts(4), 64), WithinRel(3.0, 1e-9));
  CHECK_THAT(factor(ring_all_reduce(4), hosts(4), 1 << 15), WithinRel(2.0, 1e-9));
  CHECK_THAT(factor(ring_all_reduce(4), one_host, 64), WithinRel(1.0, 1e-9));
  CHECK_THAT(factor(ring_all_reduce(5), hosts(5), 64), WithinRel(1.0, 1e-9));
  CHECK_THAT(factor(ring_all_reduce(5), std::vector{0, 1, 2, 3, 3}, 64), WithinRel(1.0, 1e-9));
  CHECK_THAT(factor(recursive_doubling(4), hosts(4), 64), WithinRel(1.0, 1e-9));
  // What is chosen follows, here from the largest size down to that where the gain is small.
  const std::vector<AlgorithmChoice> before = choose_algorithms(hosts(4), textbook_costs());
  costs.corrections = {
      {.algorithm = std::string(before.back().algorithm), .ranks = 4, .hosts = 4, .points = {{1 << 10, 100.0}}}};
  for (const AlgorithmChoice& choice : choose_algorithms(hosts(4), costs))
    CHECK(choice.algorithm != before.back().algorithm);
}

TEST_CASE("choices are written and read as one word") {
  const std::vector<AlgorithmChoice> choices = choices_from_text("recursive-doubling,16384:ring,1048576:direct");
  REQUIRE(choices.size() == 3);
  CHECK(choices[0] == AlgorithmChoice{0, "recursive-doubling"});
  CHECK(choices[2] == AlgorithmChoice{1048576, "direct"});
  CHECK(to_text(choices) == "recursive-doubling,16384:ring,1048576:direct");
  CHECK_THAT(error_of([] { choices_from_text(""); }), ContainsText("unknown all-reduce algorithm ''"));
  CHECK_THAT(error_of([] { choices_from_text("rings"); }), ContainsText("did you mean ring?"));
  for (const char* text : {"ring,", "ring,direct", "ring,5", "ring,x:direct", "ring,8:direct,8:ring", "ring,-4:direct"})
    CHECK_THAT(error_of([&] { choices_from_text(text); }), ContainsText("is no choice of algorithms"));
}
