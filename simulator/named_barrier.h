// bar.sync: barriers for some of a block's threads.
#pragma once

#include <source_location>

namespace tandem::simulator {

/// Waits until `threads` threads (a multiple of 32) have come to barrier `id`, 1 to 15; 0 is __syncthreads().
void sync_named(unsigned id, unsigned threads, std::source_location where);

// Called by the engine.
void clear_named_barriers();

}  // namespace tandem::simulator
