// Messages of TensorBoard's HParams plugin, which shows runs side by side with their settings.
// Source: tensorboard/plugins/hparams/{plugin_data,api}.proto
#pragma once

#include "tandem/train/config_value.h"
#include "tandem/train/writers/tensorboard/wire_message.h"

#include <span>
#include <string>

namespace tandem::train::detail {

/// The tags that the plugin looks for.
inline constexpr const char* kExperimentTag = "_hparams_/experiment";
inline constexpr const char* kSessionStartTag = "_hparams_/session_start_info";
inline constexpr const char* kSessionEndTag = "_hparams_/session_end_info";

/// What the runs of an experiment have: these settings, of these types, and these tags of scalars as results.
WireMessage experiment_info(double time, const Config& config, std::span<const std::string> metrics);
/// A run's settings.
WireMessage session_start_info(double time, const Config& config);
WireMessage session_end_info(double time, bool success);

}  // namespace tandem::train::detail
