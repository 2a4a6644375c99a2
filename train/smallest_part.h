// Whether a network can be trained on the smallest share of a batch that some rank gets.
#pragma once

#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/train/forward.h"

namespace tandem::train {

/// Throws Error, naming the numbers, where some rank's share of a batch is a single example and `model` cannot be
/// trained on one, as with batch norm that sees one value per channel. Tried where there is such a share, with an
/// example of zeros, where Loader::zeros() gives one: modes, buffers, gradients and observers are as before; forward
/// hooks are called. Says the same on every rank; not collective.
void check_smallest_part(layers::Module& model, const data::Loader& loader, const ForwardFunction& forward = {});

}  // namespace tandem::train
