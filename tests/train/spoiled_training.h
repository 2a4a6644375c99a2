// A small training in which a number can be spoiled: in an example, a weight, a gradient or a loss.
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/data/sampler.h"
#include "tandem/data/tensor_dataset.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace tandem::test {

inline constexpr std::int64_t kExamples = 24, kBatch = 8, kStepsInEpoch = 3, kFeatures = 6, kClasses = 4;

/// The identity, whose backward gives NaN where `spoils` says so. Its buffer is infinite, as a mask may be.
class Spoiler final : public layers::Module {
 public:
  Tensor& mask = add_buffer("mask", Tensor::full({2}, -std::numeric_limits<double>::infinity()));
  std::function<bool()> spoils = [] { return false; };

  Tensor forward(const Tensor& x) override {
    return autograd::record("spoil", {x}, x.detach(), [this](const autograd::BackwardContext& context) {
      const Tensor gradient = context.grad_output().clone();
      if (spoils()) gradient.fill(std::nan(""));
      return std::vector<Tensor>{gradient};
    });
  }
  std::string describe() const override { return "Spoiler"; }
};

/// Linear, ReLU, Spoiler, Linear on points, of one rank.
struct SpoiledTraining {
  comm::ProcessGroup& group;
  layers::Sequential model;
  Spoiler* spoiler = nullptr;
  std::unique_ptr<optim::SGD> optimizer;
  std::unique_ptr<data::Loader> loader, test;
  std::unique_ptr<optim::GradScaler> scaler;
  std::unique_ptr<train::Trainer> trainer;

  /// `bad_example`: of the training set, whose first number is NaN; -1: none.
  SpoiledTraining(comm::ProcessGroup& ranks, train::TrainerOptions options, std::int64_t bad_example = -1,
                  DType dtype = DType::f32, std::int64_t bad_test_example = -1)
      : group(ranks),
        scaler(std::make_unique<optim::GradScaler>(
            dtype == DType::f16 ? optim::GradScaler(optim::GradScalerOptions{.init_scale = 1024.0})
                                : optim::GradScaler())) {
    layers::Initializer initializer(1);
    model.add<layers::Linear>({.in = kFeatures, .out = 5}, initializer);
    model.add<layers::ReLU>();
    spoiler = &model.add<Spoiler>();
    model.add<layers::Linear>({.in = 5, .out = kClasses}, initializer);
    model.to(dtype);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.1});
    loader = loader_of(bad_example, true, dtype);
    test = loader_of(bad_test_example, false, dtype);
    options.group = &group;
    options.scaler = scaler.get();
    options.test = test.get();
    trainer = std::make_unique<train::Trainer>(model, *optimizer, *loader, options);
  }

  std::unique_ptr<data::Loader> loader_of(std::int64_t bad_example, bool shuffle, DType dtype) const {
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < kExamples; ++i) {
      for (std::int64_t k = 0; k < kFeatures; ++k)
        values.push_back(static_cast<float>(std::sin(static_cast<double>(7 * i + 3 * k))));
      if (i == bad_example) values[static_cast<std::size_t>(i * kFeatures)] = std::nanf("");
      labels.push_back(i % kClasses);
    }
    const Tensor x = autograd::cast(Tensor::from(values, {kExamples, kFeatures}), dtype);
    return std::make_unique<data::Loader>(data::TensorDataset({x, Tensor::from(labels, {kExamples})}),
                                          data::DistributedSampler(kExamples, group.size(), group.rank(), shuffle, 1),
                                          data::LoaderOptions{.global_batch_size = kBatch, .threads = 0});
  }

  /// Where an example comes up in the first epoch: the step, from 1, and the rank.
  std::pair<std::int64_t, int> step_and_rank_of(std::int64_t example) const {
    const auto order = loader->sampler().order(0);
    const auto place = std::find(order.begin(), order.end(), example) - order.begin();
    return {place / kBatch + 1, static_cast<int>(place % kBatch / (kBatch / group.size()))};
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Tensor& parameter : model.parameters()) {
      const auto values = autograd::cast(parameter.detach(), DType::f32).to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

}  // namespace tandem::test
