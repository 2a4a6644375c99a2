// What messages between ranks cost, and combining what they bring: measured, by size.
// Example:
//     MessageCosts costs = usual_message_costs();
//     costs.between_hosts = CostCurve::line(30e-6, 12e9);  // 30 us, then 12 GB/s
//     const double seconds = costs.between_hosts.at(1 << 20);
#pragma once

#include "tandem/comm/cost/correction.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// What a message of one size takes.
struct CostPoint {
  std::int64_t bytes = 0;  ///< of the message
  double seconds = 0.0;    ///< that it takes

  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

/// Seconds by size. Between two points it is a straight line; before the first it is what the first is, and behind the
/// last it goes on as steep as between the last two. A single point holds for all sizes.
class CostCurve {
 public:
  /// Of nothing: 0 seconds whatever the size.
  CostCurve() = default;
  /// Throws Error unless the sizes ascend from 0 or more, and the times are from 0 to 1e12 and do not descend.
  explicit CostCurve(std::vector<CostPoint> points);
  /// latency + bytes / bytes_per_second, in seconds: the model of Hockney (Parallel Computing 20(3), 1994). Throws
  /// Error unless `bytes_per_second` is above 0, and for a latency that is no time of a point.
  static CostCurve line(double latency, double bytes_per_second);

  /// Seconds for so many bytes.
  double at(std::int64_t bytes) const;
  /// Whether it has no points, so that all is 0.
  bool is_empty() const { return points_.empty(); }
  /// In ascending order of sizes.
  const std::vector<CostPoint>& points() const { return points_; }

  friend bool operator==(const CostCurve&, const CostCurve&) = default;

 private:
  std::vector<CostPoint> points_;
};

/// Costs as functions of the size, as in the model PLogP (T. Kielmann, H. E. Bal, K. Verstoep: "Fast measurement of
/// LogP parameters for message passing platforms", IPDPS Workshops 2000).
struct MessageCosts {
  double start = 0.0;  ///< seconds that a collective takes on each rank before its first message
  /// Seconds that sending a message and receiving one keep a rank busy, however short they are: what more short ones
  /// take than one. The rest of a short message's time is its latency, in which a rank can do something else.
  double overhead = 0.0;
  /// Seconds in which each of two neighbours has sent so many bytes to the other, and received as many; data longer
  /// than a segment go in segments, which come from and go to memory of that size. Within a host, and between hosts.
  CostCurve within_host, between_hosts;
  /// Seconds in which a rank combines so many bytes that came in segments with as many of its own.
  CostCurve combine;
  /// Cores that the ranks of a host shared while all this was measured on all of them at once; 0: each had its own.
  int shared_cores = 0;
  /// By how much whole all-reduces differ from what all this predicts: measured, by algorithm.
  std::vector<Correction> corrections = {};

  friend bool operator==(const MessageCosts&, const MessageCosts&) = default;
};

/// Throws Error unless `start` and `overhead` are from 0 to 1e12 seconds, the cores 0 or more, and the corrections as
/// check_correction() wants them.
void check_costs(const MessageCosts& costs);

/// Where nothing was measured: a message within a host takes 2 us and 4 GB/s, one between hosts 25 us and 1.1 GB/s (TCP
/// on Ethernet of 10 Gbit/s), each 1 us of a rank's time; combining, 8 GB/s; a collective begins after 1 us.
MessageCosts usual_message_costs();

/// As text, from which every number comes back as it was; for ranks that tell each other.
std::string to_text(const MessageCosts& costs);
/// Throws Error for another text.
MessageCosts message_costs_from_text(std::string_view text);

}  // namespace tandem::comm
