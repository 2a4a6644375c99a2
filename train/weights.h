// The weights of a model that trains in half precision: what its optimizer keeps of them in f32.
#pragma once

#include "layers/module.h"
#include "optim/optimizer.h"

namespace tandem::train {

/// The model's state dict with the optimizer's masters in place of their half parameters: what to save, so that nothing
/// is lost.
layers::NamedTensors full_state_dict(const layers::Module& model, const optim::Optimizer& optimizer);

/// The model's parameters, and the masters as "<name>.master": what replicas have in common.
layers::NamedTensors parameters_and_masters(const layers::Module& model, const optim::Optimizer& optimizer);

}  // namespace tandem::train
