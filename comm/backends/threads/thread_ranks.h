// Ranks that are threads of this process, with a choice of ways and of how they are watched.
#pragma once

#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/comm/launch/run_thread_ranks.h"
#include "tandem/comm/process_group.h"

#include <functional>

namespace tandem::comm {

/// As run_thread_ranks(ranks, body), with a choice of ways; the group's name is `options.name`.
void run_thread_ranks(int ranks, const NativeOptions& options, const std::function<void(ProcessGroup&)>& body);

/// The same, watched in another way than by default_timeout() alone: a rank that the others wait for in vain is named
/// by the error of those that wait. `watch.on_fault` is not looked at.
void run_thread_ranks(int ranks, const NativeOptions& options, const WatchOptions& watch,
                      const std::function<void(ProcessGroup&)>& body);

}  // namespace tandem::comm
