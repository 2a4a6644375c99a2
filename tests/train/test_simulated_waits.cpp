// How often a training step makes the host wait for the device.
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/simulator/runtime.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

struct Waits {
  std::int64_t event = 0, stream = 0;
};

Waits waits_so_far() {
  const simulator::RuntimeCounts& counts = simulator::runtime_counts();
  return {counts.event_waits, counts.stream_waits};
}

/// Of a run of so many steps, a single epoch.
Waits waits_of(std::int64_t steps, bool resident, optim::LossScaling scaling) {
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 8 * steps, .channels = 1, .side = 8, .seed = 3}));
  comm::ProcessGroup group(comm::make_self_backend());
  layers::Initializer initializer(3);
  layers::Sequential model;
  model.add<layers::Conv2d>({.in = 1, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
  model.add<layers::BatchNorm2d>({.channels = 8});
  model.add<layers::ReLU>();
  model.add<layers::Flatten>();
  model.add<layers::Linear>({.in = 8 * 64, .out = 10}, initializer);
  model.to(kGpu);
  comm::DistributedDataParallel replicas(group, model.named_parameters(), model.named_buffers());
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  const optim::ConstantSchedule schedule;
  data::Loader loader(images, {.global_batch_size = 8,
                               .augment = data::parse_augment("crop=1,flip"),
                               .shuffle = true,
                               .device = kGpu,
                               .resident = resident});
  optim::GradScaler scaler(optim::GradScalerOptions{.mode = scaling, .init_scale = 16.0});
  train::Trainer trainer({model, optimizer, schedule, group, replicas, loader, nullptr, scaler}, {.epochs = 1});
  const Waits before = waits_so_far();
  trainer.run({});
  const Waits after = waits_so_far();
  return {after.event - before.event, after.stream - before.stream};
}

}  // namespace

TEST_CASE("a training step waits for its loss alone, and with a loss scale for the check of the gradients",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const bool resident : {false, true}) {
    for (const optim::LossScaling scaling : {optim::LossScaling::none, optim::LossScaling::fixed}) {
      INFO((resident ? "resident" : "images on the CPU")
           << (scaling == optim::LossScaling::none ? "" : ", loss scale"));
      constexpr std::int64_t kFew = 2, kMany = 7;
      const Waits few = waits_of(kFew, resident, scaling), many = waits_of(kMany, resident, scaling);
      CHECK(many.event - few.event == kMany - kFew);
      // Reading a number is two calls that wait: the copy to memory that is not pinned, and the stream behind it.
      CHECK(many.stream - few.stream == (scaling == optim::LossScaling::none ? 0 : 2 * (kMany - kFew)));
    }
  }
}
