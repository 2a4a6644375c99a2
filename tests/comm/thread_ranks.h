// Ranks that are threads of this program and run at the same time: for tests of what a process shares, under
// ThreadSanitizer above all.
#pragma once

#include "tandem/comm/backends/threads/thread_ranks.h"

namespace tandem::test {

using comm::run_thread_ranks;

}  // namespace tandem::test
