// Where the time of profiled steps goes: ranges by name, with what they compute and move.
#pragma once

#include "tandem/core/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train {

/// What a machine can do at most; 0: not known.
struct MachineLimits {
  double flops_per_second = 0.0;  ///< f32
  double bytes_per_second = 0.0;  ///< of memory
  bool is_nominal = false;        ///< computed from clocks and widths, and not measured: no program may reach it
};

/// All events of one name. Times are seconds without the ranges inside.
struct OpTotals {
  std::string name;                 ///< of the events
  std::int64_t count = 0;           ///< how many there were
  double seconds = 0.0;             ///< of all, without the ranges inside
  double flops = 0.0, bytes = 0.0;  ///< of all; 0: not told
};

/// Of Timeline::events or device_events, by falling time.
std::vector<OpTotals> op_totals(const std::vector<TimelineEvent>& events);

/// The GPU's time by range, falling: of Timeline::device_activities, each of which counts for the range that enqueued
/// it ("outside of any range" where there is none), with the calls and the work that Timeline::events have of it; where
/// there are no activities, of Timeline::device_events.
std::vector<OpTotals> device_op_totals(const Timeline& timeline);

/// Kernels, copies and fills by their short names, by falling time; `bytes` are those of copies and fills.
std::vector<OpTotals> activity_totals(const std::vector<DeviceActivity>& activities);

/// "scale<float, 4>" of "void tandem::(anonymous namespace)::scale<float, 4>(float*, int)": without the type that is
/// returned, namespaces and parameters.
std::string short_kernel_name(const std::string& name);

/// A table of the `shown` names with the most time: calls and milliseconds of a step, share of all time, and, where
/// ranges told their work, GFLOP/s and GB/s with their shares of the limits. Of a timeline with device events these are
/// of the GPU, and a line tells where its times are from; a table of its kernels follows where there are activities,
/// and one of the host's time, with the GPU's beside it. Below it the peak of memory and the largest storages at that
/// moment, by their names where they have such.
/// Example:
///     start_timeline();
///     {
///       const ProfileRange range("matmul");
///       add_work(1e6, 1e4);
///     }
///     const std::string table = op_table(stop_timeline(), 1);
///     const bool has_row = table.find("matmul") != table.npos;  // true
std::string op_table(const Timeline& timeline, std::int64_t steps, const MachineLimits& limits = {}, int shown = 20);

}  // namespace tandem::train
