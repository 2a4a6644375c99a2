// The same ranges on all ranks: which rank is the slowest, and which the fastest.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/timeline.h"

#include <cstdint>
#include <string>

namespace tandem::train {

/// A table of the `shown` names with the most time on any rank: milliseconds of a step (without the ranges inside) on
/// average, on the slowest and on the fastest rank, and which these are. A rank without a range counts as 0. Of the
/// GPU's times where all ranks have those. The text is on rank 0, and empty on the others. Collective. Example:
///     start_timeline();
///     {
///       const ProfileRange range("forward");
///     }
///     comm::ProcessGroup group(comm::make_self_backend());
///     const std::string table = rank_table(stop_timeline(), 1, group);
///     const bool has_row = table.find("forward") != table.npos;  // true
std::string rank_table(const Timeline& timeline, std::int64_t steps, comm::ProcessGroup& group, int shown = 20);

}  // namespace tandem::train
