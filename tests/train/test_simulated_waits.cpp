// How often a training step makes the host wait for the device, and what is copied between them.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/by_name.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/sgd.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/scoring.h"
#include "tandem/train/test_time_augmentation.h"
#include "tandem/train/trainer.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kSide = 8, kClasses = 10;

struct Waits {
  std::int64_t event = 0, stream = 0;
};

Waits waits_so_far() {
  const simulator::RuntimeCounts& counts = simulator::runtime_counts();
  return {counts.event_waits, counts.stream_waits};
}

/// A small network on the GPU, and what trains it in epochs of so many steps.
struct SmallRun {
  std::shared_ptr<const data::ImageDataset> images;
  comm::ProcessGroup group{comm::make_self_backend()};
  layers::Initializer initializer{3};
  layers::Sequential model;
  std::unique_ptr<comm::DistributedDataParallel> replicas;
  std::unique_ptr<optim::SGD> optimizer;
  optim::ConstantSchedule schedule;
  std::unique_ptr<data::Loader> loader;
  optim::GradScaler scaler;

  SmallRun(std::int64_t steps, bool resident, const optim::GradScalerOptions& scaling, std::int64_t batch_size = 8)
      : images(std::make_shared<const data::ImageDataset>(
            data::make_synthetic({.count = batch_size * steps, .channels = 1, .side = kSide, .seed = 3}))),
        scaler(scaling) {
    model.add<layers::Conv2d>({.in = 1, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
    model.add<layers::BatchNorm2d>({.channels = 8});
    model.add<layers::ReLU>();
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8 * kSide * kSide, .out = kClasses}, initializer);
    model.to(kGpu);
    replicas = std::make_unique<comm::DistributedDataParallel>(group, model.named_parameters(), model.named_buffers());
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
    loader = std::make_unique<data::Loader>(images, data::LoaderOptions{.global_batch_size = batch_size,
                                                                        .augment = data::parse_augment("crop=1,flip"),
                                                                        .shuffle = true,
                                                                        .device = kGpu,
                                                                        .resident = resident});
  }

  train::TrainingParts parts() { return {model, *optimizer, schedule, group, *replicas, *loader, nullptr, scaler}; }
};

Waits waits_of(std::int64_t steps, bool resident, optim::LossScaling scaling, bool looks_ahead) {
  SmallRun run(steps, resident, {.mode = scaling, .init_scale = 16.0});
  train::TrainerOptions options{.epochs = 1};
  if (looks_ahead) options.lookahead = optim::LookaheadOptions::constant(2, 0.5);
  train::Trainer trainer(run.parts(), options);
  const Waits before = waits_so_far();
  trainer.run({});
  const Waits after = waits_so_far();
  return {after.event - before.event, after.stream - before.stream};
}

}  // namespace

// The simulated GPU does nothing before it is waited for. Both waits are for what a real one has done long ago: the
// loss is read behind the launches of the third step from it, and the check of a step's gradients in the next
// step_if(), which counts by it.
TEST_CASE("a training step waits for an earlier loss at most, and with a loss scale for the check of the gradients",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const bool resident : {false, true}) {
    for (const optim::LossScaling scaling : {optim::LossScaling::none, optim::LossScaling::fixed}) {
      for (const bool looks_ahead : {false, true}) {
        const bool scales = scaling != optim::LossScaling::none;
        CAPTURE(resident, scales, looks_ahead);
        constexpr std::int64_t kFew = 2, kMany = 7;
        const Waits few = waits_of(kFew, resident, scaling, looks_ahead),
                    many = waits_of(kMany, resident, scaling, looks_ahead);
        CHECK(many.event - few.event <= (scales ? 2 : 1) * (kMany - kFew));
        CHECK(many.stream == few.stream);
      }
    }
  }
}

TEST_CASE("a step waits for nothing where the GPU keeps up with the host, as operations and as a CUDA graph",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;  // else the GPU is never behind
  constexpr std::int64_t kSteps = 12;
  for (const train::CudaGraph graph : {train::CudaGraph::off, train::CudaGraph::on}) {
    for (const optim::LossScaling scaling : {optim::LossScaling::none, optim::LossScaling::dynamic}) {
      for (const bool averages : {false, true}) {
        CAPTURE(train::name_of(graph), scaling != optim::LossScaling::none, averages);
        SmallRun run(kSteps, true, {.mode = scaling, .init_scale = 16.0});
        train::TrainerOptions options{.epochs = 1, .clip_norm = 1.0, .cuda_graph = graph};
        if (averages) options.ema = 0.9;
        if (!averages) options.lookahead = optim::LookaheadOptions::constant(2, 0.5);
        train::Trainer trainer(run.parts(), options);
        std::vector<Waits> before, behind;  // of each step
        train::TrainObserver observer;
        observer.progress = [&](const train::Progress&) {
          behind.push_back(waits_so_far());
          synchronize(kGpu);
          before.push_back(waits_so_far());
        };
        trainer.run(observer);
        REQUIRE(behind.size() == kSteps);
        CHECK(trainer.graph_launches() == (graph == train::CudaGraph::on ? kSteps - 2 : 0));
        for (std::size_t step = 3; step < behind.size(); ++step) {
          CAPTURE(step);
          CHECK(behind[step].event == before[step - 1].event);
          CHECK(behind[step].stream == before[step - 1].stream);
        }
      }
    }
  }
}

TEST_CASE("a batch that is evaluated by a launch waits for nothing, and its images are made where it reads them",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kBatches = 9, kBatch = 8;
  struct Case {
    train::TestTimeAugmentation views;
    double share;
  };
  for (const Case& of : {Case{train::TestTimeAugmentation::none, 1.0}, Case{train::TestTimeAugmentation::six, 1.0},
                         Case{train::TestTimeAugmentation::six, 0.5}}) {
    for (const bool resident : {false, true}) {
      CAPTURE(train::name_of(of.views), of.share, resident);
      SmallRun run(kBatches, resident, {.mode = optim::LossScaling::none}, kBatch);
      train::EvaluationGraph graph(run.model, train::Scoring({}, {}, 0.0, over_views(of.views, {}, of.share)),
                                   train::CudaGraph::on);
      std::vector<Waits> before, behind;  // of each batch
      std::vector<std::int64_t> copied, to_host;
      const auto look = [&] {
        behind.push_back(waits_so_far());
        synchronize(kGpu);
        before.push_back(waits_so_far());
        copied.push_back(simulator::runtime_counts().bytes_on_device);
        to_host.push_back(simulator::runtime_counts().bytes_to_host);
        return false;
      };
      evaluate_unless(look, graph, *run.loader, run.group);
      REQUIRE(behind.size() == kBatches);
      CHECK(graph.launches() == kBatches - 2);
      for (std::size_t batch = 3; batch < behind.size(); ++batch) {
        CAPTURE(batch);
        CHECK(behind[batch].event == before[batch - 1].event);
        CHECK(behind[batch].stream == before[batch - 1].stream);
        constexpr std::int64_t kLabels = 8 * kBatch, kPixels = 4 * kSide * kSide * kBatch;
        // Within the graph outputs for the images alone and for those that are looked at again are joined.
        const std::int64_t joined = of.share < 1.0 ? 4 * kClasses * (kBatch + kBatch / 2) : 0;
        CHECK(copied[batch] - copied[batch - 1] == kLabels + joined + (resident ? 0 : kPixels));
        CHECK(to_host[batch] - to_host[batch - 1] == sizeof(kernels::ScoreSums));
      }
    }
  }
}

TEST_CASE("a launched step of resident images copies no image on the device", "[cuda][trainer]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kSteps = 8, kBatch = 8;
  for (const bool resident : {false, true}) {
    SmallRun run(kSteps, resident, {.mode = optim::LossScaling::none}, kBatch);
    train::Trainer trainer(run.parts(), {.epochs = 1, .cuda_graph = train::CudaGraph::on});
    std::vector<std::int64_t> copied;
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress&) {
      synchronize(kGpu);
      copied.push_back(simulator::runtime_counts().bytes_on_device);
    };
    trainer.run(observer);
    REQUIRE(copied.size() == kSteps);
    for (std::size_t step = 3; step < copied.size(); ++step)
      CHECK(copied[step] - copied[step - 1] == 8 * kBatch + (resident ? 0 : 4 * kSide * kSide * kBatch));
  }
}

TEST_CASE("a step with a loss scale waits for nothing between its backward pass and the next step's",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({300}, 1.0, {.device = kGpu}));
  optim::SGD sgd({weight}, {.lr = 0.5, .momentum = 0.9});
  optim::Lookahead lookahead({{"weight", weight}}, sgd, optim::LookaheadOptions::constant(1, 0.5));
  optim::GradScaler scaler({.init_scale = 4.0});
  autograd::set_grad(weight, Tensor::full({300}, 8.0, weight.options()));
  const Waits before = waits_so_far();
  const optim::FiniteCheck taken = scaler.step(sgd);
  lookahead.after_step(1, 10, taken);
  scaler.update();
  sgd.zero_grad();
  const Tensor forward = autograd::relu(weight);
  const Waits after = waits_so_far();
  CHECK(after.event == before.event);
  CHECK(after.stream == before.stream);
  CHECK(scaler.scale() == 4.0);  // asks
  CHECK(waits_so_far().event <= before.event + 1);
  CHECK(forward.to_vector<float>() == std::vector<float>(300, 0.5f));  // half way from 1 to 0
}

TEST_CASE("no optimizer waits for the loss scale in its gradients, only for the check of the step before",
          "[cuda][optimizer]") {
  if (!has_gpu()) return;
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    CAPTURE(entry.name);
    std::vector<Tensor> parameters;
    for (const Shape& shape : {Shape{8, 3, 3, 3}, Shape{4, 8, 1, 1}, Shape{300}, Shape{10, 32}}) {
      parameters.push_back(autograd::set_requires_grad(Tensor::full(shape, 1.0, {.device = kGpu})));
      autograd::set_grad(parameters.back(), Tensor::full(shape, 8.0, {.device = kGpu}));
    }
    const auto optimizer = optim::make_optimizer(parameters, {.name = std::string(entry.name)});
    optimizer->add_group({.parameters = {parameters[1], parameters[3]}, .lr_factor = 0.5});
    optim::GradScaler scaler({.init_scale = 4.0});
    for (int step = 0; step < 3; ++step) {
      const Waits before = waits_so_far();
      scaler.step(*optimizer);
      scaler.update();
      const Waits after = waits_so_far();
      if (step == 0) continue;  // makes its memory
      CHECK(after.event <= before.event + 1);
      CHECK(after.stream == before.stream);
    }
  }
}

TEST_CASE("a run on a GPU ends with the step that makes too many skipped ones in a row", "[cuda][trainer]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kSteps = 9;
  SmallRun run(kSteps, true, {.mode = optim::LossScaling::fixed, .init_scale = 0x1p100});
  int steps = 0;
  train::TrainerOptions options{.epochs = 1, .max_skipped_steps = 3};
  // Steps 1, 2 and 4 to 6 have gradients that f32 cannot hold at this scale; of step 3 they are 0.
  options.loss = [&](const Tensor& output, const Tensor& /*labels*/) {
    return autograd::mean(output * output) * (++steps == 3 ? 0.0 : 0x1p60);
  };
  train::Trainer trainer(run.parts(), options);
  const train::EpochRecord record = trainer.run({});
  REQUIRE(record.diverged);
  CHECK(record.diverged->step == 6);
  CHECK(record.diverged->skipped_steps == 3);
  CHECK(run.scaler.skipped_steps() == 5);
  CHECK(run.optimizer->steps() == 1);
}

namespace {

struct Moved {
  std::int64_t to_device = 0, to_host = 0;
};

Moved moved_so_far() {
  const simulator::RuntimeCounts& counts = simulator::runtime_counts();
  return {counts.bytes_to_device, counts.bytes_to_host};
}

/// In a step of so many images.
Moved moved_in_step(std::int64_t batch_size, bool resident) {
  constexpr std::int64_t kSteps = 3;
  const auto moved_in = [&](std::int64_t epochs) {
    SmallRun run(kSteps, resident, {.mode = optim::LossScaling::none}, batch_size);
    const optim::GradientPlaces places(run.optimizer->parameters());  // or a table of addresses is copied now and then
    train::Trainer trainer(run.parts(), {.epochs = epochs});
    const Moved before = moved_so_far();
    trainer.run({});
    const Moved after = moved_so_far();
    return Moved{after.to_device - before.to_device, after.to_host - before.to_host};
  };
  const Moved one = moved_in(1), three = moved_in(3);
  return {(three.to_device - one.to_device) / (2 * kSteps), (three.to_host - one.to_host) / (2 * kSteps)};
}

}  // namespace

TEST_CASE("what a step copies for an image is its label, and what was drawn for it, or its pixels; back come sums",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const bool resident : {true, false}) {
    CAPTURE(resident);
    const Moved small = moved_in_step(8, resident), large = moved_in_step(24, resident);
    constexpr std::int64_t kLabel = 8, kDrawn = 72, kPixels = 4 * kSide * kSide;
    CHECK(large.to_device - small.to_device == 16 * (kLabel + (resident ? kDrawn : kPixels)));
    CHECK(small.to_host == sizeof(kernels::ScoreSums));
    CHECK(large.to_host == small.to_host);
  }
}
