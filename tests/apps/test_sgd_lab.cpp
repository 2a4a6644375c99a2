// The figures of sgd_lab's lesson, computed otherwise.
#include "apps/sgd_lab/command_line.h"
#include "apps/sgd_lab/page.h"
#include "apps/sgd_lab/text.h"
#include "tandem/comm/cost/speed_up.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
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
  options.chapters = {Chapter::step, Chapter::broken};
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
  const char* const words[] = {"sgd_lab", "--ranks", "2", "--break", "order", "--network", "alpha=1ms"};
  const auto options = read_command_line(7, words);
  REQUIRE(options);
  CHECK(options->ranks == 2);
  REQUIRE(options->broken.size() == 1);
  CHECK(options->broken[0].part == Part::order);
  CHECK(options->network == "alpha=1ms");
  CHECK(options->shows(Chapter::batch_size));
  const char* const ring[] = {"sgd_lab", "--chapter", "ring"};
  CHECK(read_command_line(3, ring)->shows(Chapter::ring));
  CHECK_FALSE(read_command_line(3, ring)->shows(Chapter::broken));
  CHECK(chapters_by_name("all").size() == 6);
  CHECK_THROWS_WITH(chapters_by_name("rings"), ContainsText("--chapter: unknown chapter 'rings': did you mean ring?"));
  CHECK_THROWS_WITH(parts_by_name("sync-int"),
                    ContainsText("--break: unknown part 'sync-int': did you mean sync-init?"));
}

TEST_CASE("sgd_lab: networks that the lesson cannot be timed on") {
  CHECK_NOTHROW(check_network(kUsualNetwork));
  CHECK_NOTHROW(check_network("alpha=1ms beta=1Gbit jitter=1ms"));
  CHECK_THROWS_WITH(check_network("alpha=1ms gamma=3"), ContainsText("--network: "));
  CHECK_THROWS_WITH(check_network("alpha=1ms hosts=2"), ContainsText("--network: leave hosts out"));
  CHECK_THROWS_WITH(check_network("lose=0-1@0s"), ContainsText("--network: leave lose out"));
  CHECK_THROWS_WITH(check_network("link=shared"), ContainsText("--network: leave link=shared out"));
  CHECK_THROWS_WITH(check_network("alpha=1ms beta=1Mbit"), ContainsText("takes 0.05 s or less"));
}

TEST_CASE("sgd_lab: parts of the ring's sums grow to those of all ranks") {
  const RingLesson ring = make_ring_lesson(4, 1);
  REQUIRE(ring.parts.size() == 1 + ring.rounds.size());
  CHECK(ring.parts.front() == Values(4, std::vector<std::int64_t>(4, 1)));
  CHECK(ring.parts.back() == Values(4, std::vector<std::int64_t>(4, 4)));
  // Behind N - 1 rounds each rank has one complete chunk.
  for (const auto& of_rank : ring.parts[3]) CHECK(std::ranges::count(of_rank, 4) == 1);
}

TEST_CASE("sgd_lab: larger batches see as many examples, in fewer steps") {
  LabOptions options;
  options.ranks = 2;
  options.steps = 16;
  options.chapters = {Chapter::batch_size};
  const Lesson lesson = make_lesson(options);
  const BatchLesson& batches = lesson.batches;
  REQUIRE(batches.same.size() == 4);
  REQUIRE(batches.scaled.size() == 4);
  CHECK(batches.same[0].losses == lesson.losses);
  options.steps = 3;
  CHECK(make_batch_lesson(options, lesson.examples).scaled.back().factor == 2);  // 4 would see more than 3 steps do
  for (std::size_t i = 0; i < 4; ++i) {
    const int factor = 1 << i;
    for (const BatchRun* const run : {&batches.same[i], &batches.scaled[i]}) {
      CHECK(run->factor == factor);
      CHECK(run->batch == 2 * kBatchPerRank * factor);
      CHECK(run->losses.size() == static_cast<std::size_t>(1 + 16 / factor));
      CHECK(run->examples.back() == 16.0 * 2 * kBatchPerRank);
      CHECK(run->losses.front() == lesson.losses.front());
    }
    CHECK(batches.same[i].learning_rate == kLearningRate);
    CHECK(std::abs(batches.scaled[i].learning_rate - factor * kLearningRate) < 1e-12);
    if (i > 0) CHECK(batches.same[i].losses.back() != batches.scaled[i].losses.back());
  }
}

TEST_CASE("sgd_lab: larger batches see as many examples where they do not divide the steps") {
  const Examples examples = make_examples(1);
  // Of the steps, as many as the largest factor divides.
  const int cases[][3] = {{15, 8, 8}, {13, 8, 8}, {7, 4, 4}, {3, 2, 2}, {1, 1, 1}};
  for (const auto& [steps, factor, taken] : cases) {
    CAPTURE(steps);
    LabOptions options;
    options.ranks = 2;
    options.steps = steps;
    const BatchLesson lesson = make_batch_lesson(options, examples);
    CHECK(lesson.same.back().factor == factor);
    for (const std::vector<BatchRun>& runs : {lesson.same, lesson.scaled})
      for (const BatchRun& run : runs) {
        CHECK(run.examples.back() == 2.0 * kBatchPerRank * taken);
        CHECK(run.examples.size() == run.losses.size());
        CHECK((run.losses.size() - 1) * static_cast<std::size_t>(run.factor) == static_cast<std::size_t>(taken));
      }
  }
}

TEST_CASE("sgd_lab: larger batches see the same examples beyond an epoch") {
  const Examples examples = make_examples(1);
  // 150 batches of 8 ranks are an epoch, which has no whole number of batches that are 8 times as large.
  const auto seen = [&](int factor) {
    TrainingPlan plan{.ranks = 8, .steps = 160 / factor, .seed = 3, .batch_factor = factor, .keeps_weights = false};
    std::vector<std::vector<std::int64_t>> batches(20);  // of 8 times the examples, of all ranks
    for (const RankRecord& rank : train_replicas(plan, examples))
      for (std::size_t step = 0; step < rank.batches.size(); ++step) {
        std::vector<std::int64_t>& batch = batches[step * static_cast<std::size_t>(factor) / 8];
        batch.insert(batch.end(), rank.batches[step].begin(), rank.batches[step].end());
      }
    for (auto& batch : batches) std::ranges::sort(batch);
    return batches;
  };
  const auto small = seen(1);
  CHECK(small[19].size() == 8 * 8 * kBatchPerRank);
  CHECK(seen(8) == small);
}

TEST_CASE("sgd_lab: what is said of larger batches is what their losses are") {
  BatchLesson lesson;
  lesson.same = {{.factor = 1, .batch = 32, .examples = {}, .losses = {2.0, 1.5, 1.0}},
                 {.factor = 8, .batch = 256, .examples = {}, .losses = {2.0, 1.75}}};
  lesson.scaled = {lesson.same[0], {.factor = 8, .batch = 256, .examples = {}, .losses = {2.0, 2.1}}};
  const std::string text = batch_text(lesson);
  CHECK_THAT(text, ContainsText("from 2.0000 to 1.0000 in 2 updates"));
  CHECK_THAT(text, ContainsText("to 1.7500 in 1 update with the same learning rate, and to 2.1000 with 8 times that"));
  CHECK_THAT(text, ContainsText("25 % and -10 % of what the small batch gained"));
  CHECK_THAT(batch_text({{lesson.same[0]}, {lesson.scaled[0]}}), ContainsText("too few examples"));
  lesson.same[0].examples = {0.0, 32.0, 64.0};
  CHECK(examples_text(lesson) == "Each run has seen the same examples, 64 in all: 2 batches of 32, or 1 of 256.");
  CHECK(examples_text({{lesson.same[0]}, {lesson.scaled[0]}}) == "Each run has seen the same examples, 64 in all.");
  lesson.same[0].losses = {2.0, 2.5};
  CHECK(batch_text(lesson).find('%') == std::string::npos);
}
