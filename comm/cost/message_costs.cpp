// Straight lines between points.
#include "tandem/comm/cost/message_costs.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::comm {

CostCurve::CostCurve(std::vector<CostPoint> points) : points_(std::move(points)) {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const auto& [bytes, seconds] = points_[i];
    require(bytes >= 0 && std::isfinite(seconds) && seconds >= 0.0, "cost curve: {} bytes in {} s", bytes, seconds);
    if (i == 0) continue;
    const CostPoint& before = points_[i - 1];
    require(bytes > before.bytes && seconds >= before.seconds,
            "cost curve: {} bytes in {} s behind {} bytes in {} s: both must ascend", bytes, seconds, before.bytes,
            before.seconds);
  }
}

CostCurve CostCurve::line(double latency, double bytes_per_second) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  require(bytes_per_second > 0.0, "cost curve: {} bytes per second", bytes_per_second);
  return CostCurve({{0, latency}, {kFar, latency + static_cast<double>(kFar) / bytes_per_second}});
}

double CostCurve::at(std::int64_t bytes) const {
  if (points_.empty()) return 0.0;
  if (points_.size() == 1 || bytes <= points_.front().bytes) return points_.front().seconds;
  const auto behind = std::ranges::lower_bound(points_, bytes, {}, &CostPoint::bytes);
  const CostPoint& b = behind == points_.end() ? points_.back() : *behind;
  const CostPoint& a = *(&b - 1);
  return a.seconds +
         (b.seconds - a.seconds) * static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
}

MessageCosts usual_message_costs() {
  return {.start = 1e-6,
          .within_host = CostCurve::line(2e-6, 4e9),
          .between_hosts = CostCurve::line(25e-6, 1.1e9),
          .combine = CostCurve::line(0.0, 8e9)};
}

}  // namespace tandem::comm
