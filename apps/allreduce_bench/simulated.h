// All-reduces on a simulated network, by a virtual clock.
#pragma once

#include "apps/allreduce_bench/rows.h"

#include <functional>

namespace tandem::allreduce_bench {

/// Runs all algorithms of the options at all sizes on options.network, all ranks in this thread, and calls `show` with
/// each row. A row's times, in place, are those of the virtual clock; what is predicted is by the network's costs.
/// Throws Error where a message is lost.
void run_simulated_bench(const BenchOptions& options, const std::function<void(const BenchRow&)>& show);

}  // namespace tandem::allreduce_bench
