// What the system tells of another process of this host.
#pragma once

#include <cstdint>

namespace tandem::comm {

/// `unknown`: the system does not say. `held`: by a debugger. `halted`: of another host, which answers for it, but the
/// process does nothing.
enum class ProcessState : std::uint8_t { unknown, runs, sleeps, stopped, held, ended, halted };

/// `start`: what start_of_process() said; another process that got the same number since counts as ended.
ProcessState state_of_process(std::int64_t process, std::int64_t start);

/// When a process began, in the system's ticks as this process counts them; 0 where that is not known.
std::int64_t start_of_process(std::int64_t process);

/// Of this process: others of another one may count ticks from another time. 0 where there are none.
std::uint64_t time_namespace();

}  // namespace tandem::comm
