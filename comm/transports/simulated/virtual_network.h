// A simulated network on a clock of its own: no rank waits, and every run takes the same time.
// Example:
//     VirtualNetwork network(parse_network_model("alpha=50us beta=1GB hosts=2"));
//     const auto first = network.transport(0), second = network.transport(1);
//     const std::vector<char> sent(1000);
//     std::vector<char> received(1000);
//     const auto sending = first->send(1, 0, sent.data(), 1000);
//     const auto receiving = second->receive(0, 0, received.data(), 1000);
//     while (!receiving->done()) network.advance();
//     const double seconds = network.now();  // 51 us
#pragma once

#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/comm/transports/transport.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tandem::comm {

/// All ranks are in one thread, which polls them in turn. What a rank does between two messages takes no time. A
/// message begins when it was sent and asked for, as large ones do in MPI (rendezvous). A transfer is done when the
/// clock stands where its message has left, or arrived; advance() moves the clock. The same calls give the same times,
/// always.
class VirtualNetwork {
 public:
  /// Throws Error for a model without hosts.
  explicit VirtualNetwork(const NetworkModel& model);

  /// Of one rank; it keeps the network alive.
  std::unique_ptr<Transport> transport(int rank) const;

  /// Seconds since the start.
  double now() const;

  /// Moves the clock to the next time at which a transfer ends, and returns the ranks that have one which did. Empty if
  /// there is none: whatever is not done then never will be.
  std::vector<int> advance();

  /// "rank 3 waits for 4 messages of 2048 bytes in all from rank 2, which were lost; rank 1 has 8 bytes for rank 0,
  /// which does not ask for them", of all that is not done and not on its way; ten pairs of ranks at most.
  std::string waiting() const;

  class State;

 private:
  std::shared_ptr<State> state_;
};

/// Polls ranks until all are complete, and moves the clock meanwhile; returns the seconds that passed. `poll_rank(r)`
/// moves rank r on as far as it goes, and says whether it is complete. Throws Error, naming who waits for whom, where
/// nothing is on its way any more.
double run_ranks(VirtualNetwork& network, int ranks, const std::function<bool(int)>& poll_rank);

}  // namespace tandem::comm
