// Messages between ranks that are threads of one process.
// Example:
//     ThreadNetwork network;
//     const auto first = network.transport(0), second = network.transport(1);
//     int sent = 7, received = 0;
//     const auto sending = first->send(1, 0, &sent, sizeof sent);
//     const auto receiving = second->receive(0, 0, &received, sizeof received);
//     const bool arrived = receiving->done() && sending->done();  // true; received is 7
#pragma once

#include "tandem/comm/transports/transport.h"

#include <memory>
#include <string>

namespace tandem::comm {

/// What the ranks have in common. A receiver copies a message out of the sender's memory, which is free again then:
/// nothing is copied twice. Transports keep the network alive. Safe to use from all ranks' threads at once.
class ThreadNetwork {
 public:
  ThreadNetwork();

  /// For one rank, to be used by its thread.
  std::unique_ptr<Transport> transport(int rank) const;

  /// From now on every look at a transfer that is not done throws Error with this text: for a rank that ends by an
  /// error, so that no other waits for it. The first call counts.
  void stop(const std::string& reason) const;

  class Mailboxes;

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
};

}  // namespace tandem::comm
