// Numbers that are spoiled in different places, and where the finder sees them first.
#include "tandem/train/nan_finder.h"

#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/train/spoiled_training.h"

#include <array>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

/// What `prepare` leads to, on so many ranks; the same on all of them.
std::optional<NanFinding> found_on(int ranks,
                                   const std::function<std::unique_ptr<SpoiledTraining>(comm::ProcessGroup&)>& make,
                                   const std::function<void(SpoiledTraining&)>& prepare = {}) {
  std::vector<std::optional<NanFinding>> found(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    const auto training = make(group);
    if (prepare) prepare(*training);
    NanFinder finder(*training->trainer);
    const EpochRecord last = training->trainer->run(finder.with({}));
    found[static_cast<std::size_t>(group.rank())] = finder.first(last);
  });
  for (const auto& other : found) {
    REQUIRE(other.has_value() == found.front().has_value());
    if (other) CHECK(to_string(*other) == to_string(*found.front()));
  }
  return found.front();
}

auto plain(std::int64_t bad_example = -1, TrainerOptions options = {.epochs = 2}) {
  return [=](comm::ProcessGroup& group) { return std::make_unique<SpoiledTraining>(group, options, bad_example); };
}

}  // namespace

TEST_CASE("finder: a spoiled example is named by its number, with its step and rank", "[threads]") {
  const int ranks = GENERATE(1, 2);
  const std::int64_t example = GENERATE(0, 13, 23);
  CAPTURE(ranks, example);
  std::pair<std::int64_t, int> place;
  const auto found = found_on(ranks, plain(example), [&](const SpoiledTraining& training) {
    if (training.group.rank() == 0) place = training.step_and_rank_of(example);
  });
  REQUIRE(found);
  CHECK(found->place == NanPlace::model_input);
  CHECK(found->step == place.first);
  CHECK(found->rank == place.second);
  CHECK(found->examples == std::vector{example});
  CHECK((found->nans == 1 && found->infinities == 0));
  CHECK(found->shape == fmt::format("[{}, 6]", kBatch / ranks));
  CHECK_THAT(to_string(*found), ContainsText("that is what the loader gave"));
}

TEST_CASE("finder: a spoiled weight is named before a layer that has it", "[threads]") {
  const int ranks = GENERATE(1, 2);
  const bool from_the_beginning = GENERATE(true, false);
  CAPTURE(ranks, from_the_beginning);
  std::vector<std::optional<NanFinding>> all(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    SpoiledTraining training(group, {.epochs = 2});
    const Tensor weight = training.model.named_parameters()[2].second.detach();
    const auto spoil = [&] { weight.narrow(0, 1, 1).fill(std::numeric_limits<double>::infinity()); };
    if (from_the_beginning) spoil();
    NanFinder finder(*training.trainer);
    const EpochRecord last = training.trainer->run(finder.with({.progress = [&](const Progress& progress) {
      if (progress.step == 2) spoil();
    }}));
    all[static_cast<std::size_t>(group.rank())] = finder.first(last);
  });
  const auto& found = all.front();
  REQUIRE(found);
  CHECK(found->place == NanPlace::weight);
  CHECK(found->tensor == "3.weight");
  CHECK(found->layer == "3");
  CHECK(found->step == (from_the_beginning ? 1 : 3));
  CHECK((found->infinities == 5 && found->nans == 0));
  CHECK(found->other_ranks.size() == static_cast<std::size_t>(ranks - 1));
}

TEST_CASE("finder: a gradient that one rank spoils is named with its layer and this rank", "[threads]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  const int spoiling = ranks - 1;
  SECTION("a parameter's") {
    const auto found = found_on(ranks, plain(), [&](SpoiledTraining& training) {
      if (training.group.rank() != spoiling) return;
      autograd::on_gradient_ready(training.model.parameters()[0], [&training](Tensor gradient) {
        if (training.trainer->steps_done() == 3) gradient.fill(std::nan(""));
        return gradient;
      });
    });
    REQUIRE(found);
    CHECK(found->place == NanPlace::parameter_gradient);
    CHECK(found->tensor == "0.weight");
    CHECK((found->step == 4 && found->rank == spoiling && found->nans == 30));
    CHECK(found->other_ranks.empty());
  }
  SECTION("an activation's") {
    const auto found = found_on(ranks, plain(), [&](SpoiledTraining& training) {
      if (training.group.rank() == spoiling)
        training.spoiler->spoils = [&training] { return training.trainer->steps_done() == 1; };
    });
    REQUIRE(found);
    CHECK(found->place == NanPlace::input_gradient);
    CHECK((found->layer == "2" && found->description == "Spoiler"));
    CHECK((found->step == 2 && found->rank == spoiling));
  }
  SECTION("the loss's") {
    const auto loss = [](const Tensor& output, const Tensor& labels) {
      const Tensor entropy = autograd::softmax_cross_entropy(output, labels, 0.0);
      return autograd::scale(entropy, std::numeric_limits<double>::infinity());
    };
    const auto found = found_on(ranks, plain(-1, {.loss = loss, .epochs = 2}));
    REQUIRE(found);
    CHECK(found->place == NanPlace::output_gradient);
    CHECK((found->layer.empty() && found->step == 1));
    CHECK_THAT(to_string(*found), ContainsText("the loss function made it"));
  }
}

TEST_CASE("finder: gradients that are finite on each rank, and whose sum is not, are named as such", "[threads]") {
  const auto found = found_on(2, plain(), [](SpoiledTraining& training) {
    autograd::on_gradient_ready(training.model.parameters()[2], [](Tensor gradient) {
      gradient.fill(3e38);
      return gradient;
    });
  });
  REQUIRE(found);
  CHECK((found->place == NanPlace::exchanged_gradient && found->tensor == "3.weight" && found->step == 1));
  CHECK((found->infinities == 20 && found->other_ranks == std::vector{1}));
}

TEST_CASE("finder: what overflows in f16 is the output of the layer that it begins in", "[threads]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  const auto make = [](comm::ProcessGroup& group) {
    return std::make_unique<SpoiledTraining>(group, TrainerOptions{.epochs = 2}, -1, DType::f16);
  };
  const auto found = found_on(ranks, make, [](SpoiledTraining& training) {
    // Neighbours among the inputs have opposite signs, nearly, and so have these: no sum is small.
    const Tensor weight = training.model.named_parameters()[0].second.detach();
    for (std::int64_t k = 0; k < kFeatures; ++k) weight.narrow(1, k, 1).fill(k % 2 == 0 ? 6e4 : -6e4);
  });
  REQUIRE(found);
  CHECK(found->place == NanPlace::output);
  CHECK((found->layer == "0" && found->dtype == "f16" && found->step == 1));
  CHECK(found->infinities > 0);
  CHECK((found->largest_input > 0.5 && found->largest_input <= 1.0));  // of sines
}

TEST_CASE("finder: an overflow that a loss scale skips is none, until the run ends of it") {
  comm::ProcessGroup group(comm::make_self_backend());
  for (const bool always : {false, true}) {
    CAPTURE(always);
    SpoiledTraining training(group, {.epochs = 4, .max_skipped_steps = 3}, -1, DType::f16);
    training.spoiler->spoils = [&] { return always || training.trainer->steps_done() % 4 == 1; };
    NanFinder finder(*training.trainer);
    const EpochRecord last = training.trainer->run(finder.with({}));
    const auto found = finder.first(last);
    REQUIRE(found.has_value() == always);
    CHECK(last.skipped_steps == 3);
    if (!found) continue;
    CHECK(last.diverged == Divergence{.step = 3, .skipped_steps = 3});
    CHECK((found->place == NanPlace::input_gradient && found->layer == "2" && found->step == 3));
  }
}

TEST_CASE("finder: a spoiled test image is found in the evaluation") {
  comm::ProcessGroup group(comm::make_self_backend());
  SpoiledTraining training(group, {.epochs = 2}, -1, DType::f32, 11);
  NanFinder finder(*training.trainer);
  const EpochRecord last = training.trainer->run(finder.with({}));
  const auto found = finder.first(last);
  REQUIRE(found);
  CHECK(last.stopped);
  CHECK((found->place == NanPlace::model_input && found->in_evaluation && found->step == kStepsInEpoch));
  CHECK_THAT(to_string(*found), ContainsText("evaluation behind step 3, rank 0: "));
}

TEST_CASE("finder: an update that makes a weight infinite is named where its gradient was finite") {
  comm::ProcessGroup group(comm::make_self_backend());
  SpoiledTraining training(group, {.epochs = 2});
  training.model.parameters()[3].detach().fill(3e38);  // alike for all classes: the loss is as it was
  autograd::on_gradient_ready(training.model.parameters()[3], [](Tensor gradient) {
    gradient.fill(-3e38);
    return gradient;
  });
  training.optimizer->set_lr(1.0);
  const TrainerOptions options{.group = &group, .epochs = 1};
  Trainer trainer(training.model, *training.optimizer, *training.loader, options);
  NanFinder finder(trainer);
  const auto found = finder.first(trainer.run(finder.with({})));
  REQUIRE(found);
  CHECK((found->place == NanPlace::update && found->tensor == "3.bias" && found->step == 1));
}

TEST_CASE("finder: a buffer may be infinite, but not NaN") {
  comm::ProcessGroup group(comm::make_self_backend());
  SpoiledTraining training(group, {.epochs = 2});
  NanFinder finder(*training.trainer);
  const auto found = finder.first(training.trainer->run(finder.with({.progress = [&](const Progress& progress) {
    if (progress.step == 2) training.spoiler->mask.fill(std::nan(""));
  }})));
  REQUIRE(found);
  CHECK((found->place == NanPlace::update && found->tensor == "2.mask" && found->nans == 2 && found->step == 3));
}

TEST_CASE("finder: what is finite is trained with the same bits, and the hooks go") {
  comm::ProcessGroup group(comm::make_self_backend());
  SpoiledTraining watched(group, {.epochs = 2}), other(group, {.epochs = 2});
  {
    NanFinder finder(*watched.trainer);
    CHECK_FALSE(finder.first(watched.trainer->run(finder.with({}))));
  }
  CHECK_FALSE(watched.model.is_observed());
  other.trainer->run({});
  CHECK(watched.weights() == other.weights());
}
