// Collectives of several backends, timed by turns.
#pragma once

#include "apps/allreduce_bench/groups.h"
#include "apps/allreduce_bench/rows.h"

#include <functional>
#include <vector>

namespace tandem::allreduce_bench {

/// Runs them, of these groups of the same ranks, and calls `show` with each row on rank 0, when its size is done.
/// Collective. Throws AgreedError for a roofline of ranks on several hosts.
void run_bench(const std::vector<NamedGroup>& groups, const BenchOptions& options,
               const std::function<void(const BenchRow&)>& show);

}  // namespace tandem::allreduce_bench
