// Runs of allreduce_bench, which keeps no run directory of its own.
#pragma once

#include "tandem/train/report/run_data.h"

#include <string>

namespace tandem::study {

/// Figures by name of the first object that allreduce_bench --json printed: all_reduce_seconds and bus_bandwidth, in
/// place. Empty where there is none.
train::report::NumberTable bench_figures(const std::string& output);

}  // namespace tandem::study
