// Tensors by name: the parameters and buffers of a network, the state of an optimizer, the contents of a file.
#pragma once

#include "tandem/core/tensor.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// In a fixed order; who returns one says which.
/// Example:
///     const NamedTensors weights{{"weight", Tensor::zeros({10, 256})}, {"bias", Tensor::zeros({10})}};
///     const auto& [name, tensor] = weights[1];
///     const std::string text = name + " of " + describe(tensor);  // "bias of f32[10]"
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tandem
