// A small network and a problem for it, for tests of training in half precision.
#pragma once

#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/random.h"
#include "tandem/layers/layers.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace tandem::test {

inline constexpr std::int64_t kPointSize = 8, kPointClasses = 4;

/// Convolutional in form (1x1 images), so that batch norm takes part.
inline std::unique_ptr<layers::Sequential> make_mixed_net(autograd::Precision precision, Device device = {}) {
  layers::Initializer initializer(3);
  auto network = std::make_unique<layers::Sequential>();
  network->add<layers::Conv2d>({.in = kPointSize, .out = 16, .relu = true}, initializer);
  network->add<layers::BatchNorm2d>({.channels = 16});
  network->add<layers::Flatten>();
  network->add<layers::Linear>({.in = 16, .out = kPointClasses}, initializer);
  network->to(device);
  network->set_precision(precision);
  return network;
}

struct Points {
  Tensor images, labels;
};

/// Noise; the label is the largest of the first four numbers.
inline Points make_points(std::int64_t count, std::uint32_t step, Device device = {}) {
  const RandomKey key{.seed = 11, .stream = RandomStream::test, .step = step};
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (std::int64_t n = 0; n < count; ++n) {
    for (std::int64_t i = 0; i < kPointSize; ++i)
      values.push_back(key.normal(static_cast<std::uint64_t>(n * kPointSize + i)));
    const auto first = values.end() - kPointSize;
    labels.push_back(std::max_element(first, first + kPointClasses) - first);
  }
  const Tensor images = Tensor::from(values, {count, kPointSize, 1, 1}, Layout::channels_last);
  return {images.to(device), Tensor::from(labels, {count}).to(device)};
}

/// Forward and backward with the loss times `factor`; the plain loss.
inline double backward_points(layers::Module& network, const Points& points, double factor) {
  const Tensor loss = autograd::softmax_cross_entropy(network(points.images), points.labels);
  autograd::backward(loss, Tensor::full({}, factor, loss.options()));
  return loss.item();
}

}  // namespace tandem::test
