// The `native` backend: collectives written in this library, over a transport of messages, and through memory where
// ranks share a host.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/native/device_segments.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/environment.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tandem::comm {

/// Whether ranks of one host come to each other's data where these are, which copies them once or not at all.
enum class SingleCopy : std::uint8_t {
  automatic,  ///< where they see these data, or the system lets them read these and that is faster
  on,         ///< all data that are more than some KiB; an error where the system refuses reading
  off,        ///< data go through a window that all see
};

/// Whether GPUs of one host read each other's memory, by CUDA IPC.
enum class DeviceCopies : std::uint8_t {
  automatic,  ///< where they can
  on,         ///< an error where ranks have GPUs and these cannot
  off,        ///< tensors of GPUs go through host memory
};

struct NativeOptions {
  std::string name = "native";  ///< of the backend
  /// Of messages: a row of all_reduce_algorithms() by its name, or "by-cost", the one with the least predicted time.
  std::string all_reduce = "by-cost";
  MessageCosts costs = usual_message_costs();  ///< by which that is predicted
  SegmentOptions segments = {};
  /// Words of a network (comm/transports/simulated/network_model.h) as late as on which messages arrive; empty for
  /// none. Ranks are then on its hosts, exchange messages only, and `costs` are the network's.
  std::string network = {};
  bool shared_memory = true;                             ///< through memory, where all ranks share a host
  SingleCopy single_copy = SingleCopy::automatic;        ///< with shared_memory alone
  Device device = {};                                    ///< where this rank computes
  DeviceCopies device_copies = DeviceCopies::automatic;  ///< of tensors there; with shared_memory alone
  DeviceSegments device_segments = {};
};

/// Those of GroupOptions::algorithm and ::network (comm/process_group.h), and of the environment variables
/// TANDEM_SINGLE_COPY and TANDEM_CUDA_IPC: "auto", "on" or "off". Throws Error where one is another, and AgreedError
/// for algorithm shared-memory beside a network.
NativeOptions native_options(std::string name, std::string_view algorithm, std::string_view network = {},
                             const EnvironmentLookup& environment = environment_variable);

/// `place` is this rank's among the ranks that `transport` joins; `node_of_rank` has Place::node of each. Collective.
/// Throws Error for an algorithm that there is not, and on all ranks an AgreedError where single_copy or device_copies
/// is on and ranks cannot read each other's memory, and for a network that these ranks cannot be on.
std::unique_ptr<Backend> make_native_backend(const Place& place, const std::vector<int>& node_of_rank,
                                             std::unique_ptr<Transport> transport, const NativeOptions& options = {});

}  // namespace tandem::comm
