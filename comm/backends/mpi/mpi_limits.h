// What one call of MPI takes, which counts in int up to MPI 3; tests take less.
#pragma once

#include <climits>
#include <cstdint>

namespace tandem::comm {

struct MpiLimits {
  /// Elements of a reduction, bytes of a broadcast or message: longer ones go in chunks of so many.
  std::int64_t chunk = std::int64_t{1} << 30;
  /// Bytes of all parts of a collective together, elements of a reduce_scatter: larger ones go part by part.
  std::int64_t total = INT_MAX;
};

}  // namespace tandem::comm
