// How large the gradients, updates and weights of each layer are.
#pragma once

#include "tandem/layers/module.h"
#include "tandem/optim/optimizer.h"
#include "tandem/train/records.h"

#include <vector>

namespace tandem::train {

/// Looks at one optimizer step from both sides. A layer is a module with parameters of its own that the optimizer
/// trains, by the name of the module ("layer1.0.conv1"); a parameter of the model itself stands by its own name. Norms
/// are Euclidean, over all of a layer's parameters, of masters where there are such. Takes a copy of the weights
/// (MemoryTag::workspace) while it lives, and makes a GPU wait: for a step now and then.
/// Example:
///     std::vector<LayerNorms> step_with_norms(const layers::Module& model, optim::Optimizer& optimizer) {
///       LayerMeter meter(model, optimizer);
///       optimizer.step();
///       return meter.norms();
///     }
class LayerMeter {
 public:
  /// Before the step, with gradients that are final: they count as often as the optimizer's gradient_factor() says.
  LayerMeter(const layers::Module& model, const optim::Optimizer& optimizer);

  /// Behind the step, in the model's order: gradients as they were at construction; the update, what the step has added
  /// to the weights; the weights as they are now.
  std::vector<LayerNorms> norms() const;

 private:
  struct Layer {
    std::string name;
    std::vector<Tensor> weights, before;
    double gradient_norm = 0.0;
  };

  std::vector<Layer> layers_;
};

}  // namespace tandem::train
