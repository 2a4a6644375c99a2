// Labels outside of the classes, which a GPU's kernels cannot refuse.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

/// A linear network of `classes` outputs and images of ten classes, both on the GPU.
struct Run {
  comm::ProcessGroup group{comm::make_self_backend()};
  std::shared_ptr<const data::ImageDataset> images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 16, .channels = 1, .side = 8, .seed = 3}));
  layers::Sequential model;
  std::unique_ptr<comm::DistributedDataParallel> replicas;
  std::unique_ptr<optim::SGD> optimizer;
  optim::ConstantSchedule schedule;
  data::Loader loader{images, {16, 1, 0, true, 1}, {.global_batch_size = 16, .device = kGpu}};
  optim::GradScaler scaler;

  explicit Run(std::int64_t classes) {
    layers::Initializer initializer(3);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = classes}, initializer);
    model.to(kGpu);
    replicas = std::make_unique<comm::DistributedDataParallel>(group, model.named_parameters(), model.named_buffers());
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.1});
  }

  train::EpochRecord train() {
    train::Trainer trainer({model, *optimizer, schedule, group, *replicas, loader, &loader, scaler}, {.epochs = 1});
    return trainer.run({});
  }
};

}  // namespace

TEST_CASE("on CUDA, training and evaluation name a label outside of the classes", "[cuda]") {
  if (!has_gpu()) return;
  Run fits(10), does_not(7);
  CHECK(std::isfinite(fits.train().train_loss));
  CHECK_THAT(error_of([&] { does_not.train(); }), ContainsText("outside of the 7 classes"));
  CHECK_THAT(error_of([&] { train::evaluate(does_not.model, does_not.loader, does_not.group); }),
             ContainsText("outside of the 7 classes"));
}

TEST_CASE("on CUDA, a loss that is not finite for other reasons is left as it is", "[cuda]") {
  if (!has_gpu()) return;
  Run run(10);
  for (const Tensor& parameter : run.model.parameters()) parameter.detach().fill(std::nan(""));
  CHECK(std::isnan(run.train().train_loss));
}
