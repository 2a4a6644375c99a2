// The `gloo` backend: the collectives of the Gloo library (github.com/pytorch/gloo), over TCP.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <memory>
#include <string_view>

namespace tandem::comm {

/// What a build without Gloo lacks, in one line; empty in one with it.
std::string_view missing_gloo();

/// Between the ranks of `meeting`, by which they tell each other their addresses (there is no store of files for that),
/// and which it keeps. Collective. Ranks of one host meet at 127.0.0.1; of several, at the address that the host's name
/// stands for, or at that of the network interface that the environment variable GLOO_SOCKET_IFNAME names, as in
/// PyTorch. Throws Error where they cannot be connected.
///
/// all_reduce, broadcast, reduce, all_gather and barrier are Gloo's own algorithms; what else moves goes by its
/// messages.
/// Collectives under way have a thread for their progress, one after another, and each message has one that waits for
/// it. Waits have no time limit: a rank whose process ends is noticed, as its connections are closed, and then the
/// group is of no use any more. Ranks that disagree about the size of what they exchange are not told: Gloo may end the
/// process then. SIGPIPE is ignored from now on, unless the program handles it.
std::unique_ptr<Backend> make_gloo_backend(std::unique_ptr<Backend> meeting);

}  // namespace tandem::comm
