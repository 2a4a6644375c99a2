// A network, a batch and an optimizer: what one training step needs.
#pragma once

#include "apps/train_bench/settings.h"
#include "tandem/data/batch.h"
#include "tandem/layers/module.h"
#include "tandem/layers/random_state.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/train/step_graph.h"

#include <memory>

namespace tandem::apps {

class BenchModel {
 public:
  /// Throws Error on unknown names, on files that do not fit the network, and where CudaGraph::on has no GPU.
  explicit BenchModel(const BenchSettings& settings);

  /// Zeroes gradients, runs forward, loss and backward, and updates the parameters; in fp16 with a dynamic loss scale.
  /// Returns the loss, for which it waits. With BenchSettings::cuda_graph it is one launch from the third step on, with
  /// a loss scale from the one behind two that were not skipped; throws Error where CudaGraph::on cannot be done.
  double step();

  /// Steps that were launches of a CUDA graph, so far.
  std::int64_t graph_launches() const { return graph_ ? graph_->launches() : 0; }

  Device device() const { return batch_.images.device(); }
  std::int64_t batch_size() const { return batch_.count(); }
  std::int64_t parameter_count() const { return model_->parameter_count(); }

  /// Floating-point operations of the convolutions and matrix products of one step by their definition: two per
  /// multiply-add, forward, input gradient (not of the images) and weight gradient.
  std::int64_t flops_per_step();

 private:
  void make_graph(train::CudaGraph mode);
  Tensor take(const data::Batch& batch);

  std::unique_ptr<layers::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::GradScaler scaler_;
  data::Batch batch_;
  std::shared_ptr<layers::RandomState> random_state_;  // where there is a graph
  Tensor loss_;                                        // of its last step
  std::unique_ptr<train::StepGraph> graph_;            // null: steps are taken one operation after another
};

}  // namespace tandem::apps
