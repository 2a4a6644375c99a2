// A small training whose weights are averaged, and the values of tensors by name.
#pragma once

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/precision.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tandem::test {

/// A small network with batch norm.
struct AveragingRun {
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  data::Loader loader, test;
  optim::GradScaler scaler;

  explicit AveragingRun(const comm::ProcessGroup& group, DType dtype = DType::f32, double scale = 0.0)
      : loader(images(28, 3), {28, group.size(), group.rank(), true, 1}, {.global_batch_size = 8}),
        test(images(10, 5), {10, group.size(), group.rank(), false, 1}, {.global_batch_size = 5}) {
    layers::Initializer initializer(1);
    model.add<layers::Conv2d>({.in = 1, .out = 4, .kernel = 3, .padding = 1}, initializer);
    model.add<layers::BatchNorm2d>({.channels = 4, .activation = layers::Activation::relu});
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 256, .out = 10}, initializer);
    if (dtype == DType::f16) model.set_precision(autograd::Precision::fp16);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    if (scale > 0.0) scaler = optim::GradScaler(optim::GradScalerOptions{.init_scale = scale, .growth_interval = 3});
  }

  static std::shared_ptr<const data::ImageDataset> images(std::int64_t count, std::uint64_t seed) {
    return std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = seed}));
  }
};

using Values = std::map<std::string, std::vector<double>>;

inline Values values_of(const NamedTensors& tensors) {
  Values values;
  for (const auto& [name, tensor] : tensors)
    values[name] = autograd::cast(tensor.detach(), DType::f64).to_vector<double>();
  return values;
}

}  // namespace tandem::test
