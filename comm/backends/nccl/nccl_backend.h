// The `nccl` backend: collectives between GPUs on a stream of their own, and no waiting without end.
#pragma once

#include "tandem/comm/backends/nccl/nccl_communicator.h"
#include "tandem/comm/launch/launch.h"
#include "tandem/comm/process_group.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

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

/// What connects ranks: those of a run, and those of a group that is split off.
struct NcclConnector {
  /// Called by rank 0 of them.
  std::function<std::string()> make_id;
  /// Begins to connect this rank to the others of the group, all of which call it with that id. Collective.
  std::function<std::unique_ptr<NcclCommunicator>(const std::string& id, ProcessGroup& group)> start;
};

/// Waits until the communicator is connected. `others` has rank and size and does everything that is not between
/// GPUs: host tensors, byte strings, barriers. Operations follow what the current stream of `device` holds when they
/// start; a complete one is complete on the host. Sums of halves are those of comm/backends/nccl/nccl_half_sum.h. After
/// an error or a timeout the communicator is aborted, and every further operation throws an Error with the reason.
/// Groups that are split off have communicators of their own, by `connector`; without one, splitting throws Error.
std::unique_ptr<Backend> make_nccl_backend(std::unique_ptr<Backend> others,
                                           std::unique_ptr<NcclCommunicator> communicator, Device device,
                                           NcclOptions options = {}, NcclConnector connector = {});

/// The same from a connection on, of the ranks of `group`, which are those of `others`. Collective; where a rank cannot
/// be connected, all throw the same AgreedError.
std::unique_ptr<Backend> connect_nccl(ProcessGroup& group, std::unique_ptr<Backend> others,
                                      const NcclConnector& connector, Device device, NcclOptions options);

}  // namespace tandem::comm
