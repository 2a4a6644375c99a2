// A profile as JSON, for reports.
#pragma once

#include "tandem/train/profile/op_table.h"

#include <cstdint>
#include <string>

namespace tandem::train {

/// What op_table() tells, in numbers: {"steps", "flops_per_second", "bytes_per_second" (the limits, where they are
/// known), "ops": [{"name", "calls", "seconds", "flops", "bytes"}] with the most time first, over all steps; "seconds"
/// of all; on a GPU "device_times_from", and by CUPTI "kernels": [{"name", "calls", "seconds", "bytes" (of copies and
/// fills)}]; "memory": {"seconds": [...], "bytes": {KIND: [...]}} over time, at most 240 samples, each the one of its
/// interval with the most bytes; "peak_bytes", "largest_at_peak": [{"bytes", "kind", "made_in", "name", "shape"}]}.
/// Example:
///     start_timeline();
///     {
///       const ProfileRange range("matmul");
///       add_work(1e6, 1e4);
///     }
///     const std::string json = profile_json(stop_timeline(), 1);
///     const bool has_op = json.find("\"matmul\"") != json.npos;  // true
std::string profile_json(const Timeline& timeline, std::int64_t steps, const MachineLimits& limits = {});

}  // namespace tandem::train
