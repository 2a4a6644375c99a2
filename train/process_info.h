// Facts about this process and its machine.
// Example:
//     #include "tandem/core/memory.h"
//     const std::string peak = format_memory(peak_memory_bytes());  // such as "81.5 MiB"
#pragma once

#include "tandem/core/device.h"
#include "tandem/train/records.h"

#include <cstdint>
#include <string>

namespace tandem::train {

/// Largest resident set of this process so far, in bytes.
std::int64_t peak_memory_bytes();

/// The peaks of all kinds of tensors on a device; kinds without any are left out.
TensorMemory peak_tensor_memory(Device device);

/// Of this host, as the system has it.
std::string host_name();

/// Now, as 2026-01-31T12:00:00Z.
std::string utc_time();

/// Tandem, compiler, the vector instructions of the CPU's kernels and the optional parts of this build.
Versions build_versions();

}  // namespace tandem::train
