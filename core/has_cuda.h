// Whether this build has CUDA. In a header of its own: what does not ask compiles alike with and without CUDA, so that
// the builds share the compiler cache.
#pragma once

#include "tandem/config.h"

namespace tandem {

/// True where this build has CUDA devices, real or simulated ones. core/device_query.h tells whether the machine has.
/// Example:
///     constexpr int kinds_of_devices = kHasCuda ? 2 : 1;
inline constexpr bool kHasCuda = TANDEM_HAS_CUDA != 0;

}  // namespace tandem
