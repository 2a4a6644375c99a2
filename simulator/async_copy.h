// cp.async: copies from global to shared memory that are there only once they have been waited for.
#pragma once

#include "tandem/simulator/thread.h"

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace tandem::simulator {

/// Starts copying `bytes` (4, 8 or 16) to `shared`; only the first `source_bytes` come from `global`, the rest is zero.
/// Until the copy has been waited for, what is at `shared` is poison, and touching it a fault.
void start_async_copy(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes,
                      std::source_location where);
/// Closes the group of copies started since the last commit.
void commit_async_copies();
/// Waits for all groups of this thread but the newest `pending`.
void wait_for_async_copies(unsigned pending);

// Called by the engine.
void clear_async_copies();
void check_async_copies_at_exit(const Thread& thread);

}  // namespace tandem::simulator
