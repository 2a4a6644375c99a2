// CUPTI's clock beside the host's.
#pragma once

#include "tandem/core/cupti/library.h"

#include <cstdint>

namespace tandem::cupti {

/// One moment by both clocks: std::chrono::steady_clock's time lies at most `error_ns` beside `host_ns`.
struct ClockReading {
  std::int64_t cupti_ns = 0, host_ns = 0, error_ns = 0;
};

/// The best of several readings: CUPTI's clock is asked between two looks at the host's, which are closest there.
/// Throws Error where CUPTI does not tell its time.
ClockReading read_clocks(const Library& library);

/// The host's time of a moment by CUPTI's clock, on the line through two readings, as either clock may be slewed.
std::int64_t host_time(std::uint64_t cupti_ns, const ClockReading& first, const ClockReading& last);

}  // namespace tandem::cupti
