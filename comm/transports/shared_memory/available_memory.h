// How much memory a process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::comm {

/// Bytes that the machine has left, and that the control groups of this process, of version 1 or 2, let it take;
/// caches that go when others need memory count as left. `root` is where /proc and /sys are, "" the real ones. The
/// largest number where nothing says.
std::int64_t available_memory(const std::string& root = "");

}  // namespace tandem::comm
