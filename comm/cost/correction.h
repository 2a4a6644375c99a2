// How much longer an algorithm takes than predicted_seconds() says by the costs of messages: measured, by size.
// Example:
//     const Correction ring{.algorithm = "ring", .ranks = 4, .hosts = 1, .points = {{1 << 16, 1.0}, {1 << 20, 1.5}}};
//     const double factor = ring.at(1 << 18);  // 1.25: half way, as sizes are taken by their logarithms
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// At one size.
struct CorrectionPoint {
  std::int64_t bytes = 1;  ///< of each rank's data, 1 or more
  double factor = 1.0;     ///< seconds that were measured by seconds that were predicted

  friend bool operator==(const CorrectionPoint&, const CorrectionPoint&) = default;
};

/// Of all-reduces by one algorithm between so many ranks on so many hosts. What the costs of messages do not tell is in
/// it, as which caches a segment is still in when the next rank takes it.
/// A group that has the same ranks in another order on its hosts (split()) is taken to be as fast.
struct Correction {
  std::string algorithm;  ///< its name (comm/schedules/all_reduce_algorithms.h)
  int ranks = 0;
  int hosts = 0;
  std::vector<CorrectionPoint> points = {};  ///< in ascending order of sizes

  /// Between two points a straight line over the logarithm of the size; before the first and behind the last, what
  /// these have; 1 without points.
  double at(std::int64_t bytes) const;

  friend bool operator==(const Correction&, const Correction&) = default;
};

/// Throws Error unless the algorithm is a name that there is, ranks and hosts are 1 or more, sizes ascend from 1 or
/// more, and factors are from 1e-6 to 1e6.
void check_correction(const Correction& correction);

}  // namespace tandem::comm
