// Collectives of several backends, timed by turns.
#pragma once

#include "apps/allreduce_bench/rows.h"
#include "tandem/comm/launch/mpi_environment.h"

#include <functional>

namespace tandem::allreduce_bench {

/// Runs them, and calls `show` with each row on rank 0, when its size is done. Collective. Throws AgreedError for a
/// backend that these ranks cannot use, and for a roofline of ranks on several hosts.
void run_bench(comm::MpiEnvironment& environment, const BenchOptions& options,
               const std::function<void(const BenchRow&)>& show);

}  // namespace tandem::allreduce_bench
