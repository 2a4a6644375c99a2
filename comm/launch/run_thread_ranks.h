// Ranks that are threads of this process: several ranks without mpirun, and without MPI.
#pragma once

#include "tandem/comm/process_group.h"

#include <functional>

namespace tandem::comm {

/// Runs `body(group)` in `ranks` threads at once, each a rank of one group ("threads"), with collectives of this
/// library. Ranks share what is the process's, the default stream of a GPU, too; grad mode and StreamScopes are a
/// thread's own. Returns when all have ended. Where one throws, the others' operations throw, too, and the first error
/// that was thrown is thrown here: an AgreedError as it is, another Error as an Error and other exceptions as
/// std::runtime_error, both behind the number of the rank. Throws Error for less than 1 rank, and where the system does
/// not give as many threads. Example:
///     std::vector<double> sums(3);
///     run_thread_ranks(3, [&](ProcessGroup& group) {
///       const Tensor x = Tensor::full({}, group.rank() + 1.0);
///       group.all_reduce(Out(x));
///       sums[static_cast<std::size_t>(group.rank())] = x.item();
///     });
///     const double sum = sums[0];  // 6
void run_thread_ranks(int ranks, const std::function<void(ProcessGroup&)>& body);

}  // namespace tandem::comm
