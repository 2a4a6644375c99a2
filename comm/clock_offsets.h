// How the clocks of ranks stand against rank 0's: by messages to and fro.
#pragma once

#include "tandem/comm/process_group.h"

#include <cstdint>
#include <functional>
#include <span>

namespace tandem::comm {

/// One rank's clock against rank 0's, in nanoseconds.
struct ClockOffset {
  std::int64_t at_ns = 0;           ///< when they were compared, by this rank's clock
  std::int64_t offset_ns = 0;       ///< what to add to this rank's times to have rank 0's
  std::int64_t uncertainty_ns = 0;  ///< the true offset is at most so far away: half of the shortest round trip
};

/// Nanoseconds of some clock.
using ClockReading = std::function<std::int64_t()>;

/// By 16 messages from rank 0 to each rank and back, one rank after another, of which the shortest counts: the rank has
/// read its clock between its beginning and its end. Ranks of rank 0's host have its clock: their offset is 0 where
/// that is possible by the measurement. Without `now`: std::chrono::steady_clock. Collective, while nothing else is
/// under way. Example:
///     #include "tandem/comm/backends/backend.h"
///     ProcessGroup group(make_self_backend());
///     const ClockOffset offset = compare_clocks(group);
///     const std::int64_t of_rank_0 = offset.offset_ns;  // 0
ClockOffset compare_clocks(ProcessGroup& group, const ClockReading& now = {});

/// Rank 0's clock at this rank's `time_ns`. Between two comparisons the offset is taken to change evenly, before the
/// first and after the last not at all. `comparisons`: by rising time; none: the clocks are the same.
std::int64_t time_of_rank_0(std::span<const ClockOffset> comparisons, std::int64_t time_ns);

}  // namespace tandem::comm
