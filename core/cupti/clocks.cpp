// Round trips.
#include "tandem/core/cupti/clocks.h"

#include <chrono>
#include <limits>

namespace tandem::cupti {

namespace {

std::int64_t now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

ClockReading read_clocks(const Library& library) {
  constexpr int kRoundTrips = 20;
  ClockReading best;
  best.error_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kRoundTrips; ++i) {
    std::uint64_t time = 0;
    const std::int64_t before = now_ns();
    library.check(library.timestamp(&time), "cuptiGetTimestamp");
    const std::int64_t half = (now_ns() - before + 1) / 2;
    if (half < best.error_ns) best = {static_cast<std::int64_t>(time), before + half, half};
  }
  return best;
}

std::int64_t host_time(std::uint64_t cupti_ns, const ClockReading& first, const ClockReading& last) {
  const std::int64_t passed = static_cast<std::int64_t>(cupti_ns) - first.cupti_ns;
  const std::int64_t between = last.cupti_ns - first.cupti_ns;
  if (between <= 0) return first.host_ns + passed;
  // What the host's clock gained is small: a double has it to the nanosecond.
  const auto gained = static_cast<double>(last.host_ns - first.host_ns - between);
  return first.host_ns + passed +
         static_cast<std::int64_t>(gained * static_cast<double>(passed) / static_cast<double>(between));
}

}  // namespace tandem::cupti
