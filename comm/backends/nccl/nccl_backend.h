// The `nccl` backend: collectives between GPUs on a stream of their own, and no waiting without end.
#pragma once

#include "tandem/comm/backends/nccl/nccl_communicator.h"
#include "tandem/comm/launch/launch.h"

#include <chrono>

namespace tandem::comm {

struct NcclOptions {
  /// An operation that is not complete after this time is given up, with an Error. Longer than a rank may be busy with
  /// other things (reading, evaluating) while the others wait for it.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// The same for connecting, which all ranks begin at once.
  std::chrono::milliseconds start_timeout = std::chrono::minutes(1);
};

/// With the timeout of TANDEM_NCCL_TIMEOUT, in seconds, where that is set. Throws Error unless it is a number above 0.
NcclOptions nccl_options(const EnvironmentLookup& lookup);

/// Waits until the communicator is connected. `others` has rank and size and does everything that is not between
/// GPUs: host tensors, byte strings, barriers. Operations follow what the current stream of `device` holds when they
/// start; a complete one is complete on the host. Sums of halves are those of comm/backends/nccl/nccl_half_sum.h. After
/// an error or a timeout the communicator is aborted, and every further operation throws an Error with the reason.
std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Backend> others,
                                           std::unique_ptr<NcclCommunicator> communicator, Device device,
                                           NcclOptions options = {});

}  // namespace tandem::comm
