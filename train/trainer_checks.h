// What a Trainer looks at before it trains.
#pragma once

#include "tandem/train/trainer.h"

#include <string>
#include <string_view>

namespace tandem::train {

/// Throws Error for options out of range.
void check_options(const TrainerOptions& options);

/// Throws Error where one of the model's buffers is another tensor than `before`: forward() assigned it.
void check_buffers(const NamedTensors& before, const layers::Module& model);

/// Throws Error where a loader hands out the parts of other ranks than the group's.
void check_sampler(std::string_view which, const data::Loader& loader, const comm::ProcessGroup& group);

/// Throws Error where loaders deal different numbers of micro-batches, a step is to be cut in two ways, or a batch of
/// the training loader into more micro-batches than examples.
void check_micro_batches(const TrainingParts& parts, const TrainerOptions& options);

/// What makes an epoch the best. Throws Error where early stopping is to go by what no epoch has.
BestBy best_by(const TrainingParts& parts, const TrainerOptions& options);

/// What must be the same on all ranks, as lines: else they would wait for each other in different places, or take
/// different steps.
std::string shared_text(const TrainingParts& parts, const TrainerOptions& options);

}  // namespace tandem::train
