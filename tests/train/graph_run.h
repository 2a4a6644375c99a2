// Small trainings for tests of CUDA graphs: with and without, of one rank or of several.
#pragma once

#include "tandem/autograd/precision.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/notice.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/by_name.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/trainer.h"
#include "tests/support/cuda_device.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

using train::CudaGraph;

/// What a training is of.
struct Setup {
  static constexpr std::int64_t kBatch = 8, kSide = 8, kClasses = 10;
  static constexpr std::int64_t kFullSteps = 4;  // of an epoch, and a smaller batch

  std::string optimizer = "sgd";
  autograd::Precision precision = autograd::Precision::fp32;
  bool resident = false, frozen_group = false, batch_norm = true;
  std::int64_t freeze_step = 7;  // of the frozen group
  double init_scale = 0.0;       // 0: losses are not scaled
  Device device = kGpu;
  comm::ProcessGroup* group = nullptr;                     // null: of one rank
  std::int64_t images = kFullSteps * kBatch + kBatch / 2;  // all ranks'
  int loader_threads = 1;                                  // 0 where there are several ranks
};

/// A network with batch norm and dropout, and its training.
struct Run {
  std::shared_ptr<data::ImageDataset> images;
  layers::Sequential model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<data::Loader> loader, test;
  optim::CosineSchedule schedule{12};
  optim::GradScaler scaler;
  std::unique_ptr<train::Trainer> trainer;

  Run(const Setup& setup, CudaGraph mode, train::TrainerOptions options = {.epochs = 3})
      : images(std::make_shared<data::ImageDataset>(
            data::make_synthetic({.count = setup.images, .channels = 3, .side = Setup::kSide, .seed = 3}))) {
    layers::Initializer initializer(3);
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
    if (setup.batch_norm) model.add<layers::BatchNorm2d>({.channels = 8});
    model.add<layers::MaxPool2d>(2);
    model.add<layers::Flatten>();
    model.add<layers::Dropout>(0.3);
    model.add<layers::Linear>({.in = 8 * 4 * 4, .out = Setup::kClasses}, initializer);
    model.set_precision(setup.precision);
    model.to(setup.device);
    optimizer = optim::make_optimizer(model.parameters(), {.name = setup.optimizer, .lr = 0.01});
    if (setup.frozen_group)
      optimizer->add_group(
          {.parameters = {model.parameters().front()}, .lr_factor = 2.0, .freeze_step = setup.freeze_step});
    const DType dtype = autograd::storage_dtype(setup.precision);
    data::LoaderOptions batches{
        .global_batch_size = Setup::kBatch, .threads = setup.loader_threads, .dtype = dtype, .device = setup.device};
    if (setup.group != nullptr) {
      batches.share = {.world_size = setup.group->size(), .rank = setup.group->rank()};
      batches.threads = 0;
      options.group = setup.group;
    }
    test = std::make_unique<data::Loader>(images, batches);
    batches.shuffle = true;
    batches.augment = data::parse_augment("crop=1,flip");
    batches.resident = setup.resident;
    loader = std::make_unique<data::Loader>(images, batches);
    options.cuda_graph = mode;
    options.test = test.get();
    options.schedule = &schedule;
    if (setup.init_scale > 0.0)
      scaler = optim::GradScaler(optim::GradScalerOptions{.init_scale = setup.init_scale, .growth_interval = 3});
    options.scaler = &scaler;
    trainer = std::make_unique<train::Trainer>(model, *optimizer, *loader, options);
  }
};

using Values = std::map<std::string, std::vector<double>>;

inline Values values_of(const NamedTensors& state) {
  Values values;
  for (const auto& [name, tensor] : state) values[name] = tensor.to_vector<double>();
  return values;
}

/// The figures of each epoch and step, and the state at the end.
struct Trace {
  std::vector<double> figures;
  Values state;

  friend bool operator==(const Trace&, const Trace&) = default;
};

inline Trace trace_of(Run& run, std::function<void(const train::Progress&)> progress = {}) {
  Trace trace;
  train::TrainObserver observer;
  observer.progress = std::move(progress);
  observer.epoch = [&](const train::EpochRecord& r) {
    trace.figures.insert(trace.figures.end(), {r.train_loss, r.train_accuracy, r.test_loss, r.test_accuracy, r.lr});
    if (r.exchange)
      trace.figures.insert(trace.figures.end(),
                           {static_cast<double>(r.exchange->steps), static_cast<double>(r.exchange->bytes)});
  };
  observer.step = [&](const train::StepRecord& r) { trace.figures.insert(trace.figures.end(), {r.loss, r.lr}); };
  run.trainer->run(observer);
  trace.state = values_of(run.trainer->state_dict());
  return trace;
}

/// Notices given while it lives.
struct Notices {
  std::vector<std::string> lines;
  Notices() {
    kernels::listen_to_notices([this](const std::string& line) {
      if (line.starts_with("CUDA graph")) lines.push_back(line);
    });
  }
  ~Notices() { kernels::listen_to_notices(kernels::print_notice); }
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;
};

}  // namespace tandem::test
