// Loss and accuracy of training that a GPU adds up by itself.
#include "tandem/autograd/functions.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/running_scores.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kImages = 36, kBatch = 8, kSide = 8, kClasses = 10;  // the last batch has 4 images

/// A linear network on the GPU.
struct Run {
  std::shared_ptr<data::ImageDataset> images;
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  std::unique_ptr<data::Loader> loader;
  std::unique_ptr<train::Trainer> trainer;

  /// With a metric of one's own the host reads each batch.
  Run(train::TrainerOptions options, bool host_reads, DType dtype = DType::f32, bool mixes = false)
      : images(std::make_shared<data::ImageDataset>(
            data::make_synthetic({.count = kImages, .channels = 1, .side = kSide, .seed = 3}))) {
    layers::Initializer initializer(3);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = kSide * kSide, .out = kClasses}, initializer);
    model.to(dtype);
    model.to(kGpu);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    data::LoaderOptions batches{.global_batch_size = kBatch, .shuffle = true, .dtype = dtype, .device = kGpu};
    if (mixes) batches.mix = {.mixup = 0.4, .classes = kClasses};
    loader = std::make_unique<data::Loader>(images, batches);
    if (host_reads) options.metrics.push_back({"none", [](const Tensor&, const Tensor&) { return 0.0; }});
    trainer = std::make_unique<train::Trainer>(model, *optimizer, *loader, options);
  }

  /// Makes outputs NaN from this step on.
  void spoil_from(std::int64_t step) {
    model.register_forward_hook([this, step](layers::Module&, const Tensor&, const Tensor& output) {
      return trainer->steps_done() + 1 >= step ? autograd::scale(output, std::nan("")) : Tensor();
    });
  }
};

/// Loss and accuracy of each epoch and of each step record.
std::vector<double> figures_of(Run& run) {
  std::vector<double> figures;
  train::TrainObserver observer;
  observer.step = [&](const train::StepRecord& step) { figures.push_back(step.loss); };
  observer.epoch = [&](const train::EpochRecord& epoch) {
    figures.push_back(epoch.train_loss);
    if (!std::isnan(epoch.train_accuracy)) figures.push_back(epoch.train_accuracy);
  };
  run.trainer->run(observer);
  return figures;
}

}  // namespace

TEST_CASE("what a GPU adds up has the bits of what the host adds up", "[cuda][trainer]") {
  if (!has_gpu()) return;
  struct Case {
    DType dtype = DType::f32;
    bool mixes = false;
    train::TrainerOptions options = {.epochs = 2};
  };
  std::vector<Case> cases{{}, {.dtype = DType::f16}, {.mixes = true}};
  cases.push_back({.options = {.epochs = 2, .accumulation = 2, .log_every = 1}});
  cases.push_back({.options = {.epochs = 2, .log_every = 3}});
  cases.back().options.loss = [](const Tensor& output, const Tensor&) {
    return autograd::reshape(autograd::mean(output * output), {1, 1});
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    const Case& of = cases[i];
    Run on_gpu(of.options, false, of.dtype, of.mixes), on_host(of.options, true, of.dtype, of.mixes);
    const std::vector<double> figures = figures_of(on_gpu);
    CHECK(figures.size() >= 2);
    CHECK(figures == figures_of(on_host));
  }
}

TEST_CASE("batches that a GPU and the host add up in turn have the sums of all, also within a step",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const train::Scoring scoring;
  train::RunningScores mixed(scoring), plain(scoring);
  std::int64_t number = 0;
  for (std::int64_t step = 1; step <= 8; ++step) {
    mixed.begin_step();
    plain.begin_step();
    for (int batch = 0; batch < 2; ++batch, ++number) {
      std::vector<float> values(static_cast<std::size_t>(3 * kClasses));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(i) * (0.37F + 0.11F * static_cast<float>(number)));
      const Tensor logits = Tensor::from(values, {3, kClasses}).to(kGpu),
                   labels = Tensor::from<std::int64_t>({0, number % kClasses, 4}, {3}).to(kGpu);
      const Tensor loss = scoring.loss(logits, labels);
      const bool by_host = (number & 5) == 1 || number > 12;
      if (by_host || !mixed.add_on_device(loss, logits, labels, 3))
        mixed.add(scoring.begin_reading(loss, logits, labels), 3);
      plain.add(scoring.begin_reading(loss, logits, labels), 3);
      if (batch == 1) mixed.read_earlier_steps();
    }
    mixed.end_step(step);
    plain.end_step(step);
    if (step % 3 == 0) {
      CHECK(mixed.step_loss() == plain.step_loss());
      CHECK(mixed.all().metrics.loss_sum == plain.all().metrics.loss_sum);
    }
  }
  CHECK(mixed.step_loss() == plain.step_loss());
  CHECK(mixed.all().to_numbers(0) == plain.all().to_numbers(0));
}

TEST_CASE("an epoch that is left and gone on with has the sums of both parts", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run whole({.epochs = 1}, false), left({.epochs = 1}, false), resumed({.epochs = 1}, false);
  const train::EpochRecord expected = whole.trainer->run({});
  train::TrainObserver observer;
  observer.stop = [&] { return left.trainer->steps_done() == 2; };
  const train::EpochRecord part = left.trainer->run(observer);
  CHECK(part.stopped);
  resumed.trainer->load_state_dict(left.trainer->state_dict());
  const train::EpochRecord record = resumed.trainer->run({});
  CHECK(record.train_loss == expected.train_loss);
  CHECK(record.train_accuracy == expected.train_accuracy);
  CHECK(left.trainer->run({}).train_loss == expected.train_loss);
}

TEST_CASE("an evaluation on a GPU has the bits of one whose batches the host reads", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run run({.epochs = 1}, false);
  comm::ProcessGroup group(comm::make_self_backend());
  const train::Metric none{"none", [](const Tensor&, const Tensor&) { return 0.0; }};
  for (const train::LossFunction& loss :
       {train::LossFunction(),
        train::LossFunction([](const Tensor& y, const Tensor&) { return autograd::mean(y * y); })}) {
    const train::Metrics there = train::evaluate(run.model, *run.loader, group, train::Scoring(loss)).metrics,
                         here = train::evaluate(run.model, *run.loader, group, train::Scoring(loss, {none})).metrics;
    CHECK(there.loss_sum == here.loss_sum);
    CHECK(there.correct == here.correct);
    CHECK(there.count == kImages);
  }
}

TEST_CASE("a rehearsal leaves nothing in the sums of a GPU", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run rehearsed({.epochs = 1}, false), plain({.epochs = 1}, false);
  rehearsed.trainer->rehearse(2);
  CHECK(figures_of(rehearsed) == figures_of(plain));
}

TEST_CASE("progress on a GPU has the figures of three steps before, and at first those of the first step",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const auto losses_of = [](bool host_reads) {
    Run run({.epochs = 1}, host_reads);
    std::vector<double> losses;
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress& progress) { losses.push_back(progress.loss); };
    run.trainer->run(observer);
    return losses;
  };
  const std::vector<double> on_gpu = losses_of(false), on_host = losses_of(true);
  REQUIRE(on_gpu.size() == 5);
  CHECK(on_gpu[0] == on_host[0]);
  for (std::size_t i = 1; i < on_gpu.size(); ++i) CHECK(on_gpu[i] == on_host[i < 3 ? 0 : i - 3]);
}

TEST_CASE("a loss on a GPU that is not finite ends training up to three steps later, and its step is named",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kSteps = 5;  // in an epoch
  for (const std::int64_t step : {std::int64_t{1}, std::int64_t{3}, kSteps, kSteps + 2}) {
    CAPTURE(step);
    Run run({.epochs = 3}, false);
    run.spoil_from(step);
    const train::EpochRecord last = run.trainer->run({});
    CHECK(last.diverged == train::Divergence{.step = step});
    CHECK(std::isnan(last.train_loss));
    // At the end of an epoch all are read.
    CHECK(run.trainer->steps_done() == std::min(step + 3, (step + kSteps - 1) / kSteps * kSteps));
  }
}

TEST_CASE("a label outside of the classes is named up to three steps later", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run run({.epochs = 1}, false);
  std::int64_t steps = 0;
  train::TrainObserver observer;
  observer.progress = [&](const train::Progress&) { ++steps; };
  run.model.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor& output) {
    return steps >= 2 ? autograd::narrow(output, 1, 0, 1) : Tensor();  // of the third step on all labels but 0
  });
  CHECK_THAT(error_of([&] { run.trainer->run(observer); }), ContainsText("outside of the 1 classes"));
  CHECK(steps == 5);
  CHECK(run.trainer->steps_done() == 5);
}

TEST_CASE("a rehearsal tells of a label outside of the classes in its last step", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run run({.epochs = 1}, false);
  std::int64_t batches = 0;
  run.model.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor& output) {
    return ++batches == 2 ? autograd::narrow(output, 1, 0, 1) : Tensor();
  });
  CHECK_THAT(error_of([&] { run.trainer->rehearse(2); }), ContainsText("outside of the 1 classes"));
}

TEST_CASE("labels are kept for the next step only where they are looked at", "[cuda][trainer]") {
  if (!has_gpu()) return;
  const train::Scoring classes, own([](const Tensor& output, const Tensor&) { return autograd::mean(output); });
  for (const bool has_classes : {true, false}) {
    const train::Scoring& scoring = has_classes ? classes : own;
    train::RunningScores scores(scoring);
    const Tensor output = Tensor::zeros({2, 4}, {.device = kGpu});
    const Tensor labels = Tensor::zeros({2}, {.dtype = DType::i64, .device = kGpu});
    scores.begin_step();
    REQUIRE(scores.add_on_device(scoring.loss(output, labels), output, labels, 2));
    scores.end_step(1);
    CHECK(labels.is_sole_owner() != has_classes);
    scores.all();
    CHECK(labels.is_sole_owner());
  }
}
