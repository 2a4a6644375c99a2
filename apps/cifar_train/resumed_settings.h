// What a checkpoint says of its run's settings, and what a run with other ones may do with it.
#pragma once

#include "option_table.h"

#include "tandem/layers/safetensors.h"

#include <string>

namespace tandem::apps {

/// The settings that the ranks share, as metadata of a checkpoint: "setting.<option>", in TOML, or "" where it was not
/// given and its default follows from others.
layers::Metadata settings_metadata(const OptionTable& table);

/// Holds a checkpoint's settings against those of this run. Throws Error where it has others that make another model,
/// other data or another kind of optimizer: nothing could be gone on with. Returns those that change the rest of the
/// run otherwise, as the learning rate does, for the user to be told; "" if there are none.
std::string compare_settings(const OptionTable& table, const layers::Metadata& checkpoint);

}  // namespace tandem::apps
