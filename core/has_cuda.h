// Whether this build has CUDA. In a header of its own: what does not ask compiles alike with and without CUDA, so that
// the builds share the compiler cache.
#pragma once

#include "tandem/config.h"

namespace tandem {

/// True where this build has CUDA devices, real or simulated ones. core/device_query.h tells whether the machine has.
/// Example:
///     if constexpr (kHasCuda) check_device(Device{DeviceType::cuda});
inline constexpr bool kHasCuda = TANDEM_HAS_CUDA != 0;

}  // namespace tandem
