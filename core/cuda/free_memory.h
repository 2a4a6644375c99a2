// How much of a GPU's memory is left.
#pragma once

#include <cstdint>

namespace tandem::cuda {

/// Bytes of a device's memory that nobody has taken, as the driver tells: other programs count, too. Makes the device
/// the runtime's current one. Throws Error if there is no such device.
std::int64_t free_memory(int device);

}  // namespace tandem::cuda
