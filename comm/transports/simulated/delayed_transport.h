// A network that is slower than the one that there is, in real time.
// Example:
//     #include "tandem/comm/transports/threads/thread_network.h"
//     ThreadNetwork threads;
//     const NetworkModel model = parse_network_model("alpha=2ms beta=1GB hosts=2");
//     const auto first = delay_messages(threads.transport(0), 0, model);
//     const auto second = delay_messages(threads.transport(1), 1, model);
//     int sent = 7, received = 0;
//     const auto sending = first->send(1, 0, &sent, sizeof sent);
//     const auto receiving = second->receive(0, 0, &received, sizeof received);
//     while (!receiving->done()) continue;  // 2 ms
#pragma once

#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/comm/transports/transport.h"

#include <memory>

namespace tandem::comm {

/// The messages of `inner`, this rank's, which arrive as late as they would on a network of this model: sends and
/// receives are not done before. All ranks wrap theirs alike, and are on one machine, whose clock they share. A message
/// begins when it is sent, and whatever `inner` and the ranks take themselves comes on top. What is lost is never
/// received, from begin_watched() on, which is time 0 of `lose`; check() goes on to tell of ranks that have ended. A
/// time goes before each message as one of its own. Throws Error for a model whose ranks share a link, of which a rank
/// cannot know what others do with it, and for a rank that a model with hosts does not have.
std::unique_ptr<Transport> delay_messages(std::unique_ptr<Transport> inner, int rank, const NetworkModel& model);

}  // namespace tandem::comm
