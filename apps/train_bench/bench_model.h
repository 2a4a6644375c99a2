// A network, a batch and an optimizer: what one training step needs.
#pragma once

#include "apps/train_bench/settings.h"
#include "tandem/layers/module.h"
#include "tandem/optim/grad_scaler.h"

namespace tandem::apps {

class BenchModel {
 public:
  /// Throws Error on unknown names, and on files that do not fit the network.
  explicit BenchModel(const BenchSettings& settings);

  /// Zeroes gradients, runs forward, loss and backward, and updates the parameters; in fp16 with a dynamic loss scale.
  /// Returns the loss.
  double step();

  Device device() const { return images_.device(); }
  std::int64_t batch_size() const { return images_.size(0); }
  std::int64_t parameter_count() const { return model_->parameter_count(); }

  /// Floating-point operations of the convolutions and matrix products of one step by their definition: two per
  /// multiply-add, forward, input gradient (not of the images) and weight gradient.
  std::int64_t flops_per_step();

 private:
  std::unique_ptr<layers::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::GradScaler scaler_;
  Tensor images_, labels_;
};

}  // namespace tandem::apps
