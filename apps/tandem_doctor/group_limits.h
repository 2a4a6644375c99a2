// What the system lets this process have: cores and memory, also where a container or a batch system gives less than
// the machine has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tandem::apps::doctor {

/// Limits of the control groups that a process is in; none where nothing is limited.
struct GroupLimits {
  std::optional<double> cores;                ///< time of so many cores
  std::optional<std::int64_t> memory_bytes;   ///< at most
  std::optional<std::int64_t> memory_in_use;  ///< of those, where it can be read
};

/// The smallest limits on the way from the process's group up. `membership` is the text of /proc/self/cgroup, `mount`
/// is where the control groups are mounted (/sys/fs/cgroup). Versions 1 and 2 (see the kernel's
/// Documentation/admin-guide/cgroup-v2.rst: cpu.max, memory.max, memory.current).
GroupLimits read_group_limits(const std::filesystem::path& mount, const std::string& membership);

/// Of this process.
GroupLimits group_limits();

/// MemAvailable of /proc/meminfo, in bytes; 0 where the system does not tell.
std::int64_t available_memory();

/// A file was made there and removed again: "" if that worked, else the system's words.
std::string write_problem(const std::filesystem::path& folder);

}  // namespace tandem::apps::doctor
