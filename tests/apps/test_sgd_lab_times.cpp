// What sgd_lab times and predicts, against formulas; what it draws.
#include "apps/sgd_lab/charts.h"
#include "apps/sgd_lab/ring_picture.h"
#include "apps/sgd_lab/tables.h"
#include "tandem/train/report/read_step.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace tandem;
using namespace tandem::sgd_lab;
using tandem::test::ContainsText;
namespace plot = tandem::train::plot;

namespace {

constexpr double kLatency = 200e-6, kBytesPerSecond = 125e6;
constexpr std::string_view kNetwork = "alpha=200us beta=1Gbit";

/// Of one rank's steps as they might have been measured.
TimedSteps made_up_steps() {
  TimedSteps timed;
  timed.ranks = 2;
  timed.turns = 9;
  timed.network = kNetwork;
  timed.weights = 500000;
  timed.batch = 100;
  timed.layers = 5;
  timed.compute = 0.010;
  timed.behind = {
      .bucket_bytes = {2000000}, .step = 0.030, .window = 0.0, .exchange = 0.018, .waited = 0.018, .picture = {}};
  timed.beside = {.bucket_bytes = {1000000, 1000000},
                  .step = 0.020,
                  .window = 0.006,
                  .exchange = 0.018,
                  .waited = 0.009,
                  .picture = {}};
  return timed;
}

/// Where everything is that is drawn.
class Extent : public plot::Canvas {
 public:
  void line(std::span<const plot::Point> points, const plot::Stroke&) override {
    for (const plot::Point& point : points) add(point);
  }
  void polygon(std::span<const plot::Point> points, const plot::Fill&) override {
    for (const plot::Point& point : points) add(point);
    ++polygons;
  }
  void rectangles(std::span<const plot::Box> boxes, const plot::Fill&, const std::string&) override {
    for (const plot::Box& box : boxes) {
      add({box.x, box.y});
      add({box.x + box.width, box.y + box.height});
      all.push_back(box);
    }
  }
  void circle(plot::Point centre, double radius, const plot::Fill&, const std::string&) override {
    add({centre.x - radius, centre.y - radius});
    add({centre.x + radius, centre.y + radius});
  }
  void text(plot::Point at, const std::string& text, const plot::TextStyle&) override {
    add(at);
    texts.push_back(text);
  }

  double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
  std::vector<plot::Box> all;
  std::vector<std::string> texts;
  int polygons = 0;

 private:
  void add(plot::Point point) {
    left = std::min(left, point.x);
    right = std::max(right, point.x);
    top = std::min(top, point.y);
    bottom = std::max(bottom, point.y);
  }
};

bool overlap(const plot::Box& a, const plot::Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

}  // namespace

TEST_CASE("sgd_lab: steps are timed with the exchange behind the backward pass and beside it", "[threads]") {
  const TimedSteps timed = time_steps(2, kNetwork);
  CHECK(timed.turns >= 5);
  CHECK(timed.compute > 0.0);
  const double bytes = 4.0 * static_cast<double>(timed.weights), least = kLatency + bytes / kBytesPerSecond;
  for (const ExchangeWay* const way : {&timed.behind, &timed.beside}) {
    const std::int64_t in_buckets =
        std::accumulate(way->bucket_bytes.begin(), way->bucket_bytes.end(), std::int64_t{0});
    // A unit of memory for each parameter, and a mark, at most.
    CHECK(static_cast<double>(in_buckets) >= bytes);
    CHECK(static_cast<double>(in_buckets) < 1.01 * bytes + 4096.0);
    // A busy machine takes longer, and none less.
    CHECK(way->exchange > 0.99 * least);
    CHECK(way->step > way->waited);
    CHECK(way->window >= 0.0);
  }
  CHECK(timed.behind.bucket_bytes.size() == 1);
  CHECK(timed.behind.waited > 0.95 * least);
  CHECK(timed.beside.bucket_bytes.size() > 2);
  CHECK(timed.beside.window > timed.behind.window);
  CHECK(timed.beside.waited < timed.behind.waited);
  for (const ExchangeWay* const way : {&timed.behind, &timed.beside}) {
    REQUIRE(way->picture.ranks.size() == 2);
    for (const train::report::StepOfRank& rank : way->picture.ranks) {
      std::vector<std::string> phases;
      for (const train::report::StepSpan& span : rank.work)
        if (span.depth == 0) phases.push_back(span.name);
      CHECK(phases == std::vector<std::string>{"forward", "backward", "communication", "optimizer"});
      std::size_t buckets = 0;
      for (const train::report::StepRow& row : rank.rows)
        buckets += static_cast<std::size_t>(std::ranges::count_if(
            row.spans, [](const train::report::StepSpan& span) { return span.name.starts_with("bucket "); }));
      CHECK(buckets == way->bucket_bytes.size());
    }
  }
}

TEST_CASE("sgd_lab: a step behind the backward pass is computing and the formula of the exchange") {
  const TimedSteps timed = made_up_steps();
  // Two ranks send each other all at once.
  const double exchange = kLatency + 2e6 / kBytesPerSecond;
  CHECK(std::abs(predicted_step(timed, timed.behind) - (0.010 + exchange)) < 0.01 * exchange);
  // Beside it the window of 6 ms is for the first bucket, and the second one follows it.
  CHECK(std::abs(predicted_step(timed, timed.beside) - (0.010 + exchange - 0.006)) < 0.01 * exchange);
}

TEST_CASE("sgd_lab: speed-ups are predicted by the formulas that the virtual clock goes by") {
  const TimedSteps timed = made_up_steps();
  const SpeedUps all = predict_speed_ups(timed);
  REQUIRE(all.behind.size() == 7);
  REQUIRE(all.virtual_exchanges.size() == 6);
  CHECK(all.behind.front().factor == 1.0);
  CHECK(all.behind.back().ranks == 64);
  for (std::size_t i = 0; i < all.virtual_exchanges.size(); ++i) {
    const VirtualExchange& exchange = all.virtual_exchanges[i];
    CAPTURE(exchange.ranks, exchange.algorithm);
    CHECK(exchange.ranks == all.behind[i + 1].ranks);
    // No all-reduce sends less, and none of the fastest ones takes a latency for more than each step of a ring.
    const double least = 2.0 * (exchange.ranks - 1) / exchange.ranks * 2e6 / kBytesPerSecond;
    if (exchange.ranks > 2) CHECK(exchange.seconds > least);
    CHECK(exchange.seconds < least + 2.0 * (exchange.ranks - 1) * kLatency + 1e-3);
    CHECK(all.beside[i + 1].factor >= all.behind[i + 1].factor);
  }
  CHECK(std::abs(all.virtual_exchanges[0].seconds - (kLatency + 2e6 / kBytesPerSecond)) < 1e-4);
  CHECK(std::abs(measured_speed_up(timed, timed.beside) - 1.0) < 1e-12);  // 2 * 10 ms / 20 ms
}

TEST_CASE("sgd_lab: tables of times") {
  const TimedSteps timed = made_up_steps();
  const std::string text = to_text(time_table(timed));
  CHECK_THAT(text, ContainsText("  none            0    10.000     10.000    10.000   0.000   0.000\n"));
  CHECK_THAT(text, ContainsText("  beside          2    20.000"));
  CHECK_THAT(text, ContainsText("50 %"));
  CHECK_THAT(text, ContainsText("Medians of 9 steps"));
}

TEST_CASE("sgd_lab: the picture of a ring has its ranks apart, its numbers, and lies within its size") {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8}) {
    const RingLesson ring = make_ring_lesson(ranks, 3);
    for (std::size_t round = 0; round <= ring.rounds.size(); ++round) {
      CAPTURE(ranks, round);
      const RingPicture picture(ring, round);
      Extent extent;
      picture.draw(extent);
      CHECK(extent.polygons == (round == 0 ? 0 : ranks));
      if (round > 0)
        for (const Message& message : ring.rounds[round - 1].messages) {
          const plot::Point middle = picture.middle_of(message), start = picture.start_of(message);
          draw_message(extent, message, middle);
          CHECK(extent.texts.back() == std::to_string(message.value));
          CHECK_THAT(picture.description(), ContainsText(std::to_string(message.from) + " -> "));
          CHECK(std::hypot(start.x - middle.x, start.y - middle.y) > kMessageSize / 2.0);
        }
      CHECK(extent.left >= 0.0);
      CHECK(extent.top >= 0.0);
      CHECK(extent.right <= picture.size().width);
      CHECK(extent.bottom <= picture.size().height);
      CHECK(extent.all.size() == static_cast<std::size_t>(ranks * ranks));
      bool any_overlap = false;
      for (std::size_t i = 0; i < extent.all.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) any_overlap = any_overlap || overlap(extent.all[i], extent.all[k]);
      CHECK_FALSE(any_overlap);
    }
  }
}

TEST_CASE("sgd_lab: measured speed-ups are dots of the chart, and lines those that were predicted") {
  Lesson lesson;
  lesson.timed = {made_up_steps()};
  lesson.speed_ups = predict_speed_ups(lesson.timed.front());
  const plot::LineChart chart = speed_chart(lesson);
  REQUIRE(chart.series.size() == 5);
  CHECK(chart.series[1].y.back() == lesson.speed_ups.beside.back().factor);
  CHECK(chart.series[2].y.back() == lesson.speed_ups.behind.back().factor);
  const plot::Series& measured = chart.series[4];
  REQUIRE(measured.x.size() == 6);
  CHECK(std::isnan(measured.x[0]));
  CHECK(measured.x[1] == 2.0);
  CHECK(std::abs(measured.y[1] - 2.0 * 0.010 / 0.030) < 1e-12);
  CHECK(std::abs(measured.y[4] - 2.0 * 0.010 / 0.020) < 1e-12);
}
