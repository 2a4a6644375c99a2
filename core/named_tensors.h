// Tensors by name: the parameters and buffers of a network, the state of an optimizer, the contents of a file.
#pragma once

#include "tandem/core/tensor.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// In a fixed order; who returns one says which.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tandem
