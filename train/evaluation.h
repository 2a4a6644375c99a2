// Loss and accuracy of a model on a data set.
#pragma once

#include "comm/process_group.h"
#include "data/loader.h"
#include "layers/module.h"
#include "train/metrics.h"

namespace tandem::train {

/// Evaluates `model` in evaluation mode (and leaves each of its modules in the mode it was in) on every image of
/// `loader`, once, each rank on its part; the sums over all ranks, the same on each. The loss is plain cross-entropy.
/// Collective.
Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group);

}  // namespace tandem::train
