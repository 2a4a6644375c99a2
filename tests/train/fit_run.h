// What tests of Trainer::fit() train.
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::test {

inline std::shared_ptr<const data::ImageDataset> images(std::int64_t count) {
  return std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = 3}));
}

/// A linear classifier, its optimizer and its loaders.
struct FitRun {
  std::shared_ptr<const data::ImageDataset> train_images = images(20), test_images;
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  data::Loader loader, test;

  explicit FitRun(int ranks = 1, int rank = 0, std::uint64_t seed = 1, std::int64_t tests = 6)
      : test_images(images(tests)),
        loader(train_images, {20, ranks, rank, true, 1}, {.global_batch_size = 8}),
        test(test_images, {tests, ranks, rank, false, 1}, {.global_batch_size = 4}) {
    layers::Initializer initializer(seed);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 10}, initializer);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }

  std::vector<float> weights() const { return model.parameters().front().to_vector<float>(); }
};

/// Half the mean squared distance from zero: no labels needed.
inline Tensor energy(const Tensor& output, const Tensor&) {
  return autograd::scale(autograd::mean(autograd::mul(output, output)), 0.5);
}

inline double rows(const Tensor& output, const Tensor&) { return static_cast<double>(output.size(0)); }

}  // namespace tandem::test
