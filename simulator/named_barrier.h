// bar.sync: barriers for some of a block's threads.
#pragma once

#include "tandem/simulator/thread.h"

#include <source_location>

namespace tandem::simulator {

/// Waits until `threads` threads (a multiple of 32) have come to barrier `id`, 1 to 15; 0 is __syncthreads(). It counts
/// warps: lanes that have left the kernel come with the last of theirs.
void sync_named(unsigned id, unsigned threads, std::source_location where);

// Called by the engine.
void clear_named_barriers();
void leave_named_barriers(const Thread& exiting);
void forget_clocks_of_named_barriers();

}  // namespace tandem::simulator
