// The `native` backend: collectives written in this library, over a transport of messages, and through memory where
// ranks share a host.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/comm/transports/transport.h"

#include <memory>
#include <string>
#include <string_view>

namespace tandem::comm {

struct NativeOptions {
  std::string name = "native";  ///< of the backend
  /// Of messages: a row of all_reduce_algorithms() by its name, or "by-cost", the one with the least predicted time.
  std::string all_reduce = "by-cost";
  MessageCosts costs = usual_message_costs();  ///< by which that is predicted
  SegmentOptions segments = {};
  bool shared_memory = true;  ///< all_reduce, reduce and barrier through memory, where all ranks share a host
};

/// Those of GroupOptions::algorithm (comm/process_group.h).
NativeOptions native_options(std::string name, std::string_view algorithm);

/// `place` is this rank's among the ranks that `transport` joins; `node_of_rank` has Place::node of each. Collective.
/// Throws Error for an algorithm that there is not.
std::unique_ptr<Backend> make_native_backend(const Place& place, const std::vector<int>& node_of_rank,
                                             std::unique_ptr<Transport> transport, const NativeOptions& options = {});

}  // namespace tandem::comm
