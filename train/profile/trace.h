// A profile as a file that chrome://tracing and https://ui.perfetto.dev show: Chrome's trace-event format, in JSON.
#pragma once

#include "tandem/comm/clock_offsets.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/timeline.h"

#include <string>
#include <vector>

namespace tandem::train {

/// The timelines of all ranks in one trace: a process for each rank with a row for each thread, those that write
/// checkpoints being one, and, behind them, for each stream of the GPU its ranges, and its kernels and copies where
/// CUPTI told them (name, grid, block, registers, shared memory, bytes, and the range that enqueued each); buckets of
/// gradients, collectives and, of backends native and threads, each step of their algorithms (round, peer, chunk,
/// segment, bytes, microseconds of waiting, copying and combining); and the memory of each kind as counters.
///
/// Times are microseconds by rank 0's clock since the first event of all. `clocks` are this rank's comparisons, by
/// compare_clocks(), at the beginning and the end of what was recorded, for instance; without any they are compared
/// now. "otherData" has of each rank its host, the offset that its times were moved by and the
/// offset's uncertainty, of the comparison that is less certain.
/// The text is that of the file on rank 0, and empty on the others. Collective. Example:
///     start_timeline();
///     {
///       const ProfileRange range("forward");
///     }
///     comm::ProcessGroup group(comm::make_self_backend());
///     const std::string json = trace_of(stop_timeline(), group);
///     const bool has_event = json.find("\"name\":\"forward\"") != json.npos;  // true
std::string trace_of(const Timeline& timeline, comm::ProcessGroup& group, std::vector<comm::ClockOffset> clocks = {});

}  // namespace tandem::train
