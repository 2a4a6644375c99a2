// A network that is evaluated with and without a CUDA graph.
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/test_time_augmentation.h"
#include "tests/train/graph_run.h"

#include <functional>
#include <memory>
#include <utility>

namespace tandem::test {

using train::EvaluationGraph;
using train::Scores;
using train::Scoring;
using train::TestTimeAugmentation;

/// A layer that does what a test wants.
class Probe final : public layers::Module {
 public:
  std::function<Tensor(const Tensor&)> function = [](const Tensor& x) { return x; };

  Tensor forward(const Tensor& input) override { return function(input); }
};

/// A network with batch norm and a probe, and images for it.
struct EvaluatedNet {
  static constexpr std::int64_t kBatch = 8, kSide = 8, kImages = 35;
  static constexpr std::int64_t kFull = kImages / kBatch;  // batches, and a smaller one

  comm::ProcessGroup group{comm::make_self_backend()};
  layers::Sequential model;
  Probe* probe = nullptr;

  explicit EvaluatedNet(autograd::Precision precision = autograd::Precision::fp32, Device device = kGpu) {
    layers::Initializer initializer(5);
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
    model.add<layers::BatchNorm2d>({.channels = 8});
    model.add<layers::MaxPool2d>(2);
    model.add<layers::Flatten>();
    probe = &model.add<Probe>();
    model.add<layers::Linear>({.in = 8 * 4 * 4, .out = Setup::kClasses}, initializer);
    model.set_precision(precision);
    model.to(device);
    dtype_ = autograd::storage_dtype(precision);
  }

  std::unique_ptr<data::Loader> loader(std::uint64_t seed, bool resident = false, std::int64_t batch = kBatch) const {
    const auto images = std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = kImages, .channels = 3, .side = kSide, .seed = seed}));
    return std::make_unique<data::Loader>(
        images, data::LoaderOptions{.global_batch_size = batch, .dtype = dtype_, .device = kGpu, .resident = resident});
  }

  /// Other weights and running statistics, where they are.
  void change(float by) const {
    for (const auto& [name, tensor] : model.state_dict()) {
      if (!is_floating(tensor.dtype())) continue;
      const autograd::NoGrad no_grad;
      tensor.copy_from(autograd::scale(tensor.detach(), 1.0 + static_cast<double>(by)));
    }
  }

  Scores eager(data::Loader& loader, const Scoring& scoring = Scoring()) {
    return train::evaluate(model, loader, group, scoring);
  }

 private:
  DType dtype_;
};

inline bool are_same(const Scores& a, const Scores& b) {
  return a.metrics.loss_sum == b.metrics.loss_sum && a.metrics.correct == b.metrics.correct &&
         a.metrics.count == b.metrics.count;
}

}  // namespace tandem::test
