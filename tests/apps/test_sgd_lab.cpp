// The figures of sgd_lab's lesson, computed otherwise.
#include "apps/sgd_lab/command_line.h"
#include "apps/sgd_lab/page.h"
#include "apps/sgd_lab/text.h"
#include "tandem/comm/cost/speed_up.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::sgd_lab;
using tandem::test::ContainsText;

namespace {

Lesson short_lesson(std::string_view broken) {
  LabOptions options;
  options.ranks = 3;
  options.steps = 4;
  options.seed = 5;
  options.broken = parts_by_name(broken);
  return make_lesson(options);
}

}  // namespace

TEST_CASE("sgd_lab: the exchanged gradient is the mean of the ranks' own, and that of the joined batch") {
  const Lesson lesson = short_lesson("sampler");
  const Run& run = lesson.intact;
  double largest = 0.0;
  for (std::size_t i = 0; i < run[0].gradient.size(); ++i) {
    double mean = 0.0;
    for (const RankRecord& rank : run) mean += rank.own_gradient[i] / 3.0;
    largest = std::max(largest, std::abs(mean - run[0].gradient[i]));
  }
  // Two additions and a division in f32, of elements below 1.
  CHECK(norm(run[0].gradient) > 0.1);
  CHECK(largest < 4 * 6e-8);
  // The order in which 24 examples are summed differs, too.
  CHECK(lesson.gradient.relative_difference > 0.0);
  CHECK(lesson.gradient.relative_difference < 24 * 6e-8);
  CHECK(lesson.gradient.largest_difference <= lesson.gradient.relative_difference * lesson.gradient.single_norm);
}

TEST_CASE("sgd_lab: replicas of the intact run are equal, and those without a part differ from the step that is told") {
  const Lesson lesson = short_lesson("all");
  for (const RankRecord& rank : lesson.intact) CHECK(rank.weights == lesson.intact[0].weights);
  CHECK(lesson.intact[1].drawn != lesson.intact[0].drawn);
  CHECK(lesson.intact[1].batches != lesson.intact[0].batches);
  CHECK(lesson.distances == std::vector<double>(5, 0.0));
  CHECK(lesson.examples_seen == 3 * kBatchPerRank * 4);
  REQUIRE(lesson.broken.size() == 4);
  const BrokenRun &init = lesson.broken[0], &grad = lesson.broken[1], &sampler = lesson.broken[2],
                  &order = lesson.broken[3];
  CHECK(init.replicas_differ_at == 0);
  CHECK(init.distances.front() > 1.0);
  CHECK(grad.replicas_differ_at == 1);
  CHECK(grad.distances[0] == 0.0);
  CHECK(grad.distances[4] > grad.distances[1]);
  CHECK(sampler.replicas_differ_at == std::nullopt);
  CHECK(sampler.differs_from_intact == 1);
  CHECK(sampler.examples_seen == kBatchPerRank * 4);
  CHECK(order.replicas_differ_at == 1);
  for (const BrokenRun& run : lesson.broken)
    CHECK((run.losses[0] == lesson.losses[0]) == (run.left_out.part != Part::sync_init));
}

TEST_CASE("sgd_lab: the ring leaves the sums of all ranks on all ranks, in 2(N - 1) rounds") {
  for (const int ranks : {2, 3, 5, 8}) {
    const RingLesson ring = make_ring_lesson(ranks, 4);
    const auto size = static_cast<std::size_t>(ranks);
    CHECK(ring.rounds.size() == 2 * (size - 1));
    std::vector<std::int64_t> sums(size);
    for (const auto& row : ring.before)
      for (std::size_t chunk = 0; chunk < size; ++chunk) sums[chunk] += row[chunk];
    CHECK(ring.rounds.back().after == Values(size, sums));
    CHECK(ring.rounds[0].after != ring.rounds.back().after);
  }
}

TEST_CASE("sgd_lab: the speed-up of its page is that of comm/cost") {
  const SpeedGrid grid = make_speed_grid();
  REQUIRE(grid.exchange.size() ==
          grid.gigabits.size() * grid.microseconds.size() * grid.weights.size() * grid.ranks.size());
  comm::MessageCosts costs = comm::usual_message_costs();
  costs.between_hosts = comm::CostCurve::line(1e-6 * grid.microseconds[2], 1e9 / 8 * grid.gigabits[1]);
  const comm::StepCosts step{.seconds = 0.002, .window = 0.0, .bucket_bytes = {4 * grid.weights[1]}};
  const std::vector<comm::SpeedUp> expected = comm::predict_speed_ups(step, 64, costs);
  REQUIRE(expected.size() == grid.ranks.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(grid.ranks[i] == expected[i].ranks);
    const double factor = speed_up(grid.ranks[i], 0.002, grid.exchange[grid.index(1, 2, 1, i)]);
    CHECK(std::abs(factor - expected[i].factor) < 1e-9 * expected[i].factor);
  }
}

TEST_CASE("sgd_lab: options") {
  const char* const words[] = {"sgd_lab", "--ranks", "2", "--break", "order"};
  const auto options = read_command_line(5, words);
  REQUIRE(options);
  CHECK(options->ranks == 2);
  REQUIRE(options->broken.size() == 1);
  CHECK(options->broken[0].part == Part::order);
  CHECK_THROWS_WITH(parts_by_name("sync-int"),
                    ContainsText("--break: unknown part 'sync-int': did you mean sync-init?"));
}
