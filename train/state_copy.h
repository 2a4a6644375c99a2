// A copy of a state, to go back to it.
#pragma once

#include "tandem/core/named_tensors.h"

namespace tandem::train {

/// A copy of each, on its device and in its layout, without gradients. Example:
///     const NamedTensors weights{{"bias", Tensor::zeros({10})}}, before = clones_of(weights);
inline NamedTensors clones_of(const NamedTensors& tensors) {
  NamedTensors clones;
  for (const auto& [name, tensor] : tensors) clones.emplace_back(name, tensor.detach().clone());
  return clones;
}

}  // namespace tandem::train
