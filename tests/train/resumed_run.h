// A run that tests leave after some step and go on with, and what is to be the same in the end.
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/safetensors.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tandem::test {

constexpr std::int64_t kFreezeStep = 6, kEpochs = 2, kBatch = 8, kImages = 28;

inline double mean_output(const Tensor& output, const Tensor&) { return autograd::sum(output).item(); }

/// What a run may be.
struct Settings {
  bool adam = false;
  std::int64_t accumulation = 1;
  DType dtype = DType::f32;
  double init_scale = 0.0;  // above 0: of the scaler
  bool stream = false;
  bool local = true;  // batch norm and dropout, which are a rank's own
  double ema = 0.0;
  std::int64_t lookahead = 0;  // every so many steps
  std::int64_t epochs = kEpochs;
  double lr = 0.05;  // of SGD
  train::EarlyStopping stopping = {};
  /// Biases at another rate, without momentum and weight decay; the first weight by a schedule of its own, and frozen
  /// in the middle of the second epoch.
  bool groups = false;
};

/// A small network with batch norm and dropout, and all that its training takes.
struct Run {
  Settings settings;
  comm::ProcessGroup& group;
  layers::Sequential model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<data::Loader> loader, test;
  optim::CosineSchedule schedule;
  optim::GradScaler scaler;
  std::unique_ptr<train::Trainer> trainer;

  Run(const Settings& given, comm::ProcessGroup& ranks, std::uint64_t seed = 1)
      : settings(given), group(ranks), schedule(given.epochs * 4) {
    const auto images = std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = kImages, .channels = 1, .side = 8, .seed = 3}));
    const int size = group.size(), rank = group.rank();
    const data::LoaderOptions options{.global_batch_size = kBatch, .augment = data::parse_augment("crop=1,flip")};
    if (settings.stream) {
      const auto start = [images](std::uint32_t epoch) {
        return [images, i = std::int64_t{0}, epoch]() mutable -> std::optional<data::Example> {
          const std::int64_t number = (i++ * 5 + epoch) % kImages;
          data::Example example = images->get(number);
          example[0] = autograd::cast(example[0], DType::f32) * 0.01;
          return example;
        };
      };
      loader = std::make_unique<data::Loader>(data::stream_of(start, kImages), data::RankShare{size, rank},
                                              data::LoaderOptions{.global_batch_size = kBatch});
    } else {
      loader = std::make_unique<data::Loader>(images, data::DistributedSampler(kImages, size, rank, true, 1), options);
    }
    test = std::make_unique<data::Loader>(images, data::DistributedSampler(kImages, size, rank, false, 1),
                                          data::LoaderOptions{.global_batch_size = 10});
    layers::Initializer initializer(seed);
    model.add<layers::Conv2d>({.in = 1, .out = 4, .kernel = 3, .padding = 1}, initializer);
    if (settings.local) model.add<layers::BatchNorm2d>({.channels = 4, .activation = layers::Activation::relu});
    model.add<layers::Flatten>();
    if (settings.local) model.add<layers::Dropout>(0.25);
    model.add<layers::Linear>({.in = 256, .out = 10}, initializer);
    if (settings.dtype != DType::f32)
      model.set_precision(settings.dtype == DType::f16 ? autograd::Precision::fp16 : autograd::Precision::bf16);
    if (settings.adam) {
      optimizer = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = 0.01});
    } else {
      optimizer =
          std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = settings.lr, .momentum = 0.9});
    }
    if (settings.groups) {
      optimizer->add_group({.parameters = model.parameters("*.bias"),
                            .lr_factor = 4.0,
                            .weight_decay = 0.0,
                            .momentum = settings.adam ? std::nullopt : std::optional(0.0)});
      optimizer->add_group({.parameters = model.parameters("0.weight"),
                            .schedule = std::make_shared<optim::StepSchedule>(3.0, 0.5),
                            .freeze_step = kFreezeStep});
    }
    if (settings.init_scale > 0.0)
      scaler = optim::GradScaler(optim::GradScalerOptions{.init_scale = settings.init_scale, .growth_interval = 3});
    trainer = std::make_unique<train::Trainer>(model, *optimizer, *loader, options_of());
  }

  train::TrainerOptions options_of() {
    return {.test = test.get(),
            .schedule = &schedule,
            .group = &group,
            .metrics = {{"output", mean_output}},
            .scaler = &scaler,
            .epochs = settings.epochs,
            .accumulation = settings.accumulation,
            .clip_norm = 1.0,
            .ema = settings.ema,
            .lookahead = {.every = settings.lookahead},
            .early_stopping = settings.stopping,
            .best_by = settings.stopping.patience > 0 ? train::BestBy::test_accuracy : train::BestBy::test_loss,
            .log_every = 1,
            .seed = 7};
  }
};

/// What is left of a run in the end: every tensor of its state, and what it reported.
struct Trace {
  std::map<std::string, std::vector<double>> state;
  std::vector<double> losses;  // of each step
  train::EpochRecord last;
};

inline void write_state(const std::string& path, const train::Trainer& trainer, const comm::ProcessGroup& group) {
  const NamedTensors state = trainer.state_dict();
  if (group.rank() == 0) layers::write_safetensors(path, state);
}

inline Trace trace_of(Run& run, const std::function<void(std::int64_t step)>& after_step) {
  Trace trace;
  std::int64_t steps = 0;
  train::TrainObserver observer;
  observer.step = [&](const train::StepRecord& record) {
    trace.losses.push_back(record.loss);
    steps = record.step;
  };
  observer.progress = [&](const train::Progress&) {
    if (after_step) after_step(steps);
  };
  trace.last = run.trainer->run(observer);
  for (const auto& [name, tensor] : run.trainer->state_dict())
    trace.state[name] = autograd::cast(tensor, DType::f64).to_vector<double>();
  return trace;
}

inline void check_same_end(const Trace& resumed, const Trace& whole) {
  CHECK(resumed.state == whole.state);
  CHECK(resumed.last.train_loss == whole.last.train_loss);
  CHECK(resumed.last.test_loss == whole.last.test_loss);
  CHECK(resumed.last.train_accuracy == whole.last.train_accuracy);
  CHECK(resumed.last.train_metrics == whole.last.train_metrics);
  CHECK(resumed.last.skipped_steps == whole.last.skipped_steps);
  CHECK(resumed.last.lr == whole.last.lr);
  REQUIRE(resumed.losses.size() <= whole.losses.size());
  CHECK(std::equal(resumed.losses.rbegin(), resumed.losses.rend(), whole.losses.rbegin()));
}

}  // namespace tandem::test
