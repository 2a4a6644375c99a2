// A network as a table: layers, output shapes, parameter counts.
#pragma once

#include "tandem/layers/module.h"

namespace tandem::layers {

/// One line per layer that computes something itself, with its dotted name, what it is, the shape it returns for an
/// input of shape `input`, and its parameters; then the totals. Runs one forward pass on zeros in evaluation mode;
/// modes, statistics, gradients and observers are left as they were, and observers see nothing of it. A layer used more
/// than once says so. Input has a batch dimension.
/// Example:
///     #include "tandem/layers/models/models.h"
///     const auto network = make_model({.name = "vgg_lite"});
///     const std::string table = summary(*network, {1, 3, 32, 32});  // to be printed
std::string summary(Module& module, const Shape& input);

}  // namespace tandem::layers
