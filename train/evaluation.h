// Loss and accuracy of a model on a data set.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/train/metrics.h"

namespace tandem::train {

/// Evaluates `model` in evaluation mode (and leaves each of its modules in the mode it was in) on every image of
/// `loader`, once, each rank on its part; the sums over all ranks, the same on each. The loss is plain cross-entropy.
/// Collective.
Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group);

}  // namespace tandem::train
