// What messages cost on a simulated network.
// Example:
//     const MessageCosts costs = costs_of(parse_network_model("alpha=50us beta=10Gbit"));
//     const double seconds = costs.between_hosts.at(1 << 20);
#pragma once

#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/transports/simulated/network_model.h"

namespace tandem::comm {

/// Straight lines; all that ranks do themselves takes no time. Jitter, lost links and shared ones are not in it.
MessageCosts costs_of(const NetworkModel& model);

/// The same where the network is simulated in real time: what ranks do themselves takes its usual time.
MessageCosts real_time_costs_of(const NetworkModel& model);

}  // namespace tandem::comm
