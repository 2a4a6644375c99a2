// The network that the ranks of a run are on, in real time.
// Example:
//     const NetworkModel model = real_time_network("alpha=2ms beta=1Gbit", 2);  // two hosts, a rank on each
#pragma once

#include "tandem/comm/transports/simulated/network_model.h"

#include <string_view>

namespace tandem::comm {

/// From words, as parse_network_model() reads them, for so many ranks; without hosts each is on one of its own. Throws
/// Error for words that describe no network, for one of another number of ranks, and for one whose ranks share a link,
/// which is for a virtual clock.
NetworkModel real_time_network(std::string_view text, int ranks);

}  // namespace tandem::comm
