// Between points.
#include "tandem/comm/cost/correction.h"

#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <cmath>

namespace tandem::comm {

double Correction::at(std::int64_t bytes) const {
  if (points.empty()) return 1.0;
  if (bytes <= points.front().bytes) return points.front().factor;
  if (bytes >= points.back().bytes) return points.back().factor;
  const CorrectionPoint& b = *std::ranges::lower_bound(points, bytes, {}, &CorrectionPoint::bytes);
  const CorrectionPoint& a = *(&b - 1);
  const auto log_size = [](std::int64_t size) { return std::log2(static_cast<double>(size)); };
  const double share = (log_size(bytes) - log_size(a.bytes)) / (log_size(b.bytes) - log_size(a.bytes));
  return a.factor + share * (b.factor - a.factor);
}

void check_correction(const Correction& correction) {
  constexpr double kMost = 1e6;
  all_reduce_algorithm(correction.algorithm);
  require(correction.ranks >= 1 && correction.hosts >= 1, "correction of {}: of {} ranks on {} hosts",
          correction.algorithm, correction.ranks, correction.hosts);
  std::int64_t before = 0;
  for (const auto& [bytes, factor] : correction.points) {
    require(bytes > before, "correction of {}: {} bytes behind {}; sizes must ascend from 1 or more",
            correction.algorithm, bytes, before);
    require(factor >= 1.0 / kMost && factor <= kMost, "correction of {}: {} times as long for {} bytes",
            correction.algorithm, factor, bytes);
    before = bytes;
  }
}

}  // namespace tandem::comm
