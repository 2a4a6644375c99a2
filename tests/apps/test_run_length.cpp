// How long a run is, in epochs and steps, and schedules and warm-ups that follow from it.
#include "tests/apps/parsed_settings.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include "optimization.h"
#include "run_parts.h"
#include "tandem/train/config_value.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

using namespace tandem::apps;
using tandem::test::ContainsText;
namespace test = tandem::test;
namespace train = tandem::train;

namespace {

/// The length of a run of these arguments on 50,000 images: epochs and steps, 0 of these where the epochs are whole.
std::pair<std::int64_t, std::int64_t> length_of(std::vector<const char*> arguments, std::int64_t ranks = 1) {
  Parsed p;
  arguments.insert(arguments.end(), {"--dataset", "cifar10"});
  parse(p, arguments, ranks);
  const train::TrainerOptions settled = with_length(p.settings, 50000, ranks).trainer;
  return {settled.epochs, settled.steps};
}

}  // namespace

TEST_CASE("a part of an epoch is settled as steps, once the data is known") {
  using Length = std::pair<std::int64_t, std::int64_t>;
  CHECK(length_of({}) == Length(8, 0));
  CHECK(length_of({"--epochs", "3.0"}) == Length(3, 0));
  CHECK(length_of({"--epochs", "0"}) == Length(0, 0));
  const std::vector<const char*> fast{"--global-batch-size", "1024", "--epochs", "9.9"};
  CHECK(length_of(fast) == Length(10, 486));  // 49 steps in an epoch: 485.1
  std::vector<const char*> full = fast;
  full.push_back("--drop-last");
  CHECK(length_of(full) == Length(10, 476));  // 48: 475.2
  CHECK(length_of(full, 2) == Length(10, 476));
  CHECK(length_of({"--batch-size", "512", "--epochs", "9.9", "--drop-last"}, 2) == Length(10, 476));
  std::vector<const char*> accumulated = full;
  accumulated.insert(accumulated.end(), {"--grad-accumulation", "4"});
  CHECK(length_of(accumulated) == Length(10, 486));  // 195 full micro-batches of 256, four to a step
  CHECK(length_of({"--global-batch-size", "5000", "--epochs", "1.1"}) == Length(2, 11));
  CHECK(length_of({"--global-batch-size", "5000", "--epochs", "0.001"}) == Length(1, 1));
  CHECK(length_of({"--global-batch-size", "5000", "--epochs", "1.99"}) == Length(2, 20));
  CHECK(length_of({"--global-batch-size", "5000", "--steps", "21"}) == Length(3, 21));
  CHECK_THROWS_WITH(length_of({"--global-batch-size", "60000", "--epochs", "1.5", "--drop-last"}),
                    ContainsText("--drop-last leaves nothing: 50000 training images do not fill a batch of 60000"));
  CHECK(error_of({"--epochs", "-0.5"}) == "--epochs -0.5: must be at least 0");
  CHECK(error_of({"--epochs", "2000000"}) == "--epochs 2000000: must be at most 1000000");
  // Whole numbers are written as such, as they ever were.
  const auto printed = [](const char* epochs) {
    Parsed p;
    parse(p, {"--epochs", epochs});
    return train::to_toml(*p.table.find("epochs")->get());
  };
  CHECK(printed("9.9") == "9.9");
  CHECK(printed("3") == "3");
  CHECK(printed("3.0") == "3");
  CHECK(printed("1e-3") == "0.001");
}

TEST_CASE("linear decay behind a warm-up of so many steps is the schedule of airbench94") {
  Parsed p;
  parse(p, {"--epochs", "9.9", "--drop-last", "--global-batch-size", "1024", "--schedule", "linear", "--warmup-steps",
            "109", "--warmup-start-factor", "0.2", "--final-lr-factor", "0.07"});
  const Settings settled = with_length(p.settings, 50000, 1);
  const auto schedule = make_schedule(settled, 48);
  REQUIRE(settled.trainer.steps == 476);
  for (int t = 0; t < 476; ++t) {
    const double expected = t < 109 ? 0.2 + 0.8 * t / 109.0 : 1.0 - 0.93 * (t - 109) / 367.0;
    CHECK(std::abs(schedule->lr_factor(t) - expected) <= 1e-12);
  }
}

TEST_CASE("schedules stretch over the run, and a warm-up comes before them") {
  const auto factor = [](std::vector<const char*> arguments, double time) {
    Parsed p;
    parse(p, std::move(arguments));
    return make_schedule(with_length(p.settings, 400, 1), 4)->lr_factor(time);
  };
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-12; };
  const auto with = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"--dataset", "synthetic", "--global-batch-size", "100"});
    return more;
  };
  // 2.25 epochs of 4 steps are 9.
  CHECK(close(factor(with({"--schedule", "linear", "--epochs", "2.25"}), 3), 1.0 - 3.0 / 9.0));
  CHECK(close(factor(with({"--schedule", "linear", "--steps", "9"}), 3), 1.0 - 3.0 / 9.0));
  CHECK(close(factor(with({"--schedule", "linear", "--epochs", "2"}), 3), 1.0 - 3.0 / 8.0));
  CHECK(close(factor(with({"--schedule", "cosine", "--epochs", "2.25", "--final-lr-factor", "0.5"}), 4.5), 0.75));
  CHECK(close(factor(with({"--epochs", "2.25"}), 8), 1.0 / 25 / 1e4));  // one-cycle: the last step has its least
  // A warm-up of half an epoch, of 2 steps: by default one share of the way up in step 0.
  const std::vector<const char*> up = with({"--schedule", "linear", "--epochs", "2.25", "--warmup-epochs", "0.5"});
  CHECK(close(factor(up, 0), 1.0 / 3.0));
  CHECK(close(factor(up, 1), 2.0 / 3.0));
  CHECK(close(factor(up, 2), 1.0));
  CHECK(close(factor(up, 9), 0.0));
  const std::vector<const char*> steps = with({"--schedule", "constant", "--epochs", "2", "--warmup-steps", "4"});
  CHECK(close(factor(steps, 0), 0.2));
  CHECK(factor(steps, 4) == 1.0);
  CHECK(factor(with({"--schedule", "step", "--warmup-steps", "4", "--warmup-start-factor", "0"}), 0) == 0.0);
}

TEST_CASE("a warm-up that makes no sense is refused") {
  CHECK(error_of({"--schedule", "linear", "--warmup-steps", "3", "--warmup-epochs", "0.5"}) ==
        "--warmup-steps 3 and --warmup-epochs 0.5 exclude each other: give one (0 sets that of a config file aside)");
  CHECK(error_of({"--schedule", "linear", "--warmup-steps", "3", "--warmup-epochs", "0"}) == "accepted");
  CHECK(error_of({"--schedule", "linear", "--warmup-start-factor", "0.2"}) ==
        "--warmup-start-factor 0.2: there is no warm-up; give --warmup-epochs or --warmup-steps");
  CHECK(error_of({"--schedule", "linear", "--warmup-steps", "3", "--warmup-start-factor", "1.5"}) ==
        "--warmup-start-factor 1.5: must be at most 1");
  CHECK_THAT(error_of({"--warmup-steps", "3"}), ContainsText("--warmup-steps 3: of no use with --schedule one-cycle"));
  CHECK_THAT(error_of({"--final-lr-factor", "0.1", "--schedule", "step"}),
             ContainsText("--final-lr-factor 0.1: of no use with --schedule step, only with cosine, linear"));
  CHECK(error_of({"--schedule", "linear", "--warmup-epochs", "2.5", "--epochs", "2.5"}) ==
        "--warmup-epochs 2.5: must be less than --epochs 2.5");
  const auto refusal = [](std::vector<const char*> arguments) {
    Parsed p;
    arguments.insert(arguments.end(), {"--schedule", "linear", "--dataset", "synthetic", "--global-batch-size", "100"});
    parse(p, arguments);
    return test::error_of([&] { make_schedule(with_length(p.settings, 400, 1), 4); });
  };
  CHECK(refusal({"--epochs", "2.25", "--warmup-steps", "9"}) ==
        "--warmup-steps 9: 9 steps of warm-up must be less than the 9 of the run: give fewer, or train longer");
  CHECK(refusal({"--epochs", "2", "--warmup-steps", "8"}) ==
        "--warmup-steps 8: 8 steps of warm-up must be less than the 8 of the run: give fewer, or train longer");
  CHECK(refusal({"--steps", "4", "--warmup-epochs", "1.5"}) ==
        "--warmup-epochs 1.5: 6 steps of warm-up must be less than the 4 of the run: give fewer, or train longer");
}
