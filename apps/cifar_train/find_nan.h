// --find-nan: where a loss that is not finite comes from, and what is said of it before that is known.
#pragma once

#include "option_table.h"
#include "run_parts.h"
#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/train/nan_finder.h"
#include "tandem/train/records.h"

#include <string>
#include <string_view>

namespace tandem::apps {

/// The exit code where something was found.
inline constexpr int kFoundNan = 3;

/// Trains on from the newest checkpoint of --resume or --run-dir, or from the beginning where there is none, with all
/// tensors watched and nothing written, until one is not finite; tells which, and what to try. Returns kFoundNan, 0 if
/// the run came to its end, or 1 where the loss is not finite although all tensors are. Collective. Throws AgreedError.
int find_nan(const Settings& settings, const OptionTable& table, const Data& images, Device device,
             comm::ProcessGroup& group);

/// Sentences on what to try.
std::string advice_on(const train::NanFinding& finding, const Settings& settings);

/// Why a run ended whose loss is not finite, or whose steps were all skipped, what to try, and how to find out more.
std::string divergence_text(const Settings& settings, const train::EpochRecord& last);

}  // namespace tandem::apps
