// What is predicted of more ranks: by hand where messages cost straight lines.
#include "tandem/comm/cost/speed_up.h"

#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace tandem;
using namespace tandem::comm;

namespace {

constexpr double kLatency = 1e-4;
constexpr double kRate = 1e9;

MessageCosts lines() {
  MessageCosts costs = usual_message_costs();
  costs.start = costs.overhead = 0.0;
  costs.between_hosts = CostCurve::line(kLatency, kRate);
  costs.combine = {};
  return costs;
}

SpeedUp of_two(const StepCosts& step) { return predict_speed_up(step, std::vector{0, 1}, lines()); }

/// Of so many bytes between two ranks, whichever way: an exchange of all, or two of a half each.
double seconds_of(std::int64_t bytes) { return kLatency + static_cast<double>(bytes) / kRate; }

}  // namespace

TEST_CASE("one rank waits for nobody, and of nothing to exchange nobody waits") {
  const SpeedUp alone = predict_speed_up({.seconds = 0.5, .bucket_bytes = {1 << 20}}, std::vector{0}, lines());
  CHECK(alone.ranks == 1);
  CHECK(alone.factor == 1.0);
  CHECK(alone.exchange_seconds == 0.0);
  CHECK(of_two({.seconds = 0.5}).factor == 2.0);
}

TEST_CASE("without a window all of the exchange is waited for") {
  const SpeedUp gain = of_two({.seconds = 0.001, .bucket_bytes = {4096, 4096, 4096}});
  CHECK(gain.exchange_seconds == Approx(seconds_of(3 * 4096)).epsilon(0.02));  // latencies go beside each other
  CHECK(gain.waited_seconds == gain.exchange_seconds);
  CHECK(gain.factor == Approx(2.0 * 0.001 / (0.001 + gain.waited_seconds)));
}

TEST_CASE("in a long window the last bucket alone is waited for, and in a short one what does not fit") {
  // Full at 0, 10 and 30 ms of 30: by their bytes.
  const SpeedUp gain = of_two({.seconds = 0.04, .window = 0.03, .bucket_bytes = {4096, 4096, 8192}});
  CHECK(gain.waited_seconds == Approx(seconds_of(8192)).epsilon(0.02));
  const SpeedUp late = of_two({.seconds = 0.04, .window = 0.0001, .bucket_bytes = {1 << 20, 1 << 20}});
  CHECK(late.waited_seconds == Approx(late.exchange_seconds - 0.0001));
  CHECK(late.exchange_seconds == Approx(seconds_of(2 << 20)).epsilon(0.02));
  // One bucket is full when backward ends: nothing goes beside that.
  const SpeedUp one = of_two({.seconds = 0.04, .window = 0.0, .bucket_bytes = {1 << 20}});
  CHECK(one.waited_seconds == one.exchange_seconds);
}

TEST_CASE("an exchange takes what the fastest algorithm does for its size") {
  for (const std::int64_t bytes : {3, 3000, 300001}) {
    const std::vector<int> hosts{0, 1, 2, 3, 4};
    double least = 1e12;
    for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms())
      least = std::min(least, predicted_seconds(algorithm.make(hosts), hosts, bytes, lines()));
    CHECK(predict_speed_up({.seconds = 1.0, .bucket_bytes = {bytes}}, hosts, lines()).exchange_seconds ==
          Approx(least));
  }
}

TEST_CASE("ranks are doubled, each on a host of its own") {
  const StepCosts step{.seconds = 0.01, .window = 0.005, .bucket_bytes = {1 << 20, 4 << 20}};
  const std::vector<SpeedUp> all = predict_speed_ups(step, 16, lines());
  REQUIRE(all.size() == 5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].ranks == 1 << i);
    std::vector<int> hosts(static_cast<std::size_t>(all[i].ranks));
    std::iota(hosts.begin(), hosts.end(), 0);
    CHECK(all[i].factor == predict_speed_up(step, hosts, lines()).factor);
    if (i == 0) continue;
    CHECK(all[i].factor > all[i - 1].factor);
    CHECK(all[i].factor < all[i].ranks);
    CHECK(all[i].waited_seconds >= all[i - 1].waited_seconds);
  }
  CHECK(predict_speed_ups(step, 1, lines()).size() == 1);
}

TEST_CASE("times and sizes that cannot be are refused") {
  REQUIRE_THROWS_AS(of_two({.seconds = -1.0}), Error);
  REQUIRE_THROWS_AS(of_two({.seconds = 1.0, .window = 2.0}), Error);
  REQUIRE_THROWS_AS(of_two({.seconds = 1.0, .window = -1.0}), Error);
  REQUIRE_THROWS_AS(of_two({.seconds = 1.0, .bucket_bytes = {4, -4}}), Error);
}
