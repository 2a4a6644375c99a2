// From times of an epoch to what more ranks would gain.
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/train/console.h"
#include "tandem/train/scaling.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

EpochRecord epoch_of(std::int64_t ranks) {
  EpochRecord epoch;
  epoch.steps = 10;
  epoch.world_size = ranks;
  epoch.time = PhaseTimes{.data = 0.1,
                          .forward = 0.2,
                          .backward = 0.4,
                          .communication = 5.0,
                          .optimizer = 0.3,
                          .evaluation = 7.0,
                          .writing = 9.0};
  if (ranks > 1) epoch.exchange = comm::ExchangeTotals{.steps = 10, .bytes = 1, .seconds = 0.5, .waited_seconds = 0.3};
  return epoch;
}

}  // namespace

TEST_CASE("a step is what a rank computes, and the window where its exchange went beside that") {
  const comm::MessageCosts usual = comm::usual_message_costs();
  const auto scaling = predict_scaling(epoch_of(2), {1 << 20, 1 << 20}, usual);
  REQUIRE(scaling.has_value());
  CHECK(scaling->step_seconds == Approx(0.1));
  CHECK(scaling->window_seconds == Approx(0.02));
  CHECK(scaling->costs_are_usual);
  CHECK(scaling->latency == Approx(25e-6));
  CHECK(scaling->bytes_per_second == Approx(1.1e9));
  REQUIRE(scaling->predicted.size() == 7);
  CHECK(scaling->predicted.back().ranks == 64);
  const comm::SpeedUp eight = comm::predict_speed_up(
      {.seconds = scaling->step_seconds, .window = scaling->window_seconds, .bucket_bytes = {1 << 20, 1 << 20}},
      std::vector{0, 1, 2, 3, 4, 5, 6, 7}, usual);
  CHECK(scaling->predicted[3].factor == eight.factor);
  // One rank exchanges nothing: all of its backward pass would do.
  CHECK(predict_scaling(epoch_of(1), {1 << 20}, usual)->window_seconds == Approx(0.04));
  EpochRecord alone = epoch_of(1);
  alone.exchange_window = 0.15;  // of its backward pass, behind a bucket
  CHECK(predict_scaling(alone, {1 << 20}, usual)->window_seconds == Approx(0.015));

  comm::MessageCosts measured = usual;
  measured.between_hosts = comm::CostCurve::line(1e-3, 1e8);
  const auto slow = predict_scaling(epoch_of(2), {1 << 20, 1 << 20}, measured);
  CHECK_FALSE(slow->costs_are_usual);
  CHECK(slow->latency == Approx(1e-3));
  CHECK(slow->predicted.back().factor < scaling->predicted.back().factor);
}

TEST_CASE("nothing is predicted without a step, times or gradients") {
  const comm::MessageCosts costs = comm::usual_message_costs();
  EpochRecord epoch = epoch_of(2);
  CHECK_FALSE(predict_scaling(epoch, {}, costs).has_value());
  epoch.steps = 0;
  CHECK_FALSE(predict_scaling(epoch, {4}, costs).has_value());
  epoch = epoch_of(2);
  epoch.time.reset();
  CHECK_FALSE(predict_scaling(epoch, {4}, costs).has_value());
  comm::MessageCosts flat = costs;
  flat.between_hosts = comm::CostCurve(std::vector<comm::CostPoint>{{4, 1e-5}});
  CHECK_FALSE(predict_scaling(epoch_of(2), {4}, flat).has_value());
  flat.between_hosts = comm::CostCurve(std::vector<comm::CostPoint>{{1, 1e11}, {1 << 21, 9e11}});
  CHECK(predict_scaling(epoch_of(2), {1 << 24}, flat)->predicted.back().factor < 1e-3);
}

TEST_CASE("the summary of a run of several ranks tells what more would gain") {
  ResultRecord result{.last = epoch_of(2)};
  result.last.test_loss = result.last.test_accuracy = 1.0;
  CHECK(summary_text(result, {}).find("speed-up") == std::string::npos);
  result.scaling = predict_scaling(result.last, {1 << 20, 1 << 20}, comm::usual_message_costs());
  CHECK_THAT(summary_text(result, {}),
             ContainsText("  speed-up 1.98x on 2 hosts, ") && ContainsText(", predicted for 25 us and 1.1 GB/s\n"));
  result.last.world_size = 1;
  CHECK(summary_text(result, {}).find("speed-up") == std::string::npos);
  result.scaling->network_is_simulated = true;
  CHECK_THAT(summary_text(result, {}), ContainsText(", predicted for the simulated 25 us and 1.1 GB/s\n"));
}
