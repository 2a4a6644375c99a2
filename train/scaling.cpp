// From an epoch's record to a step.
#include "tandem/train/scaling.h"

#include <algorithm>

namespace tandem::train {

std::optional<Scaling> predict_scaling(const EpochRecord& epoch, const std::vector<std::int64_t>& bucket_bytes,
                                       const comm::MessageCosts& costs) {
  constexpr int kMostRanks = 64;
  constexpr std::int64_t kLong = std::int64_t{1} << 20;
  if (!epoch.time || epoch.steps <= 0 || bucket_bytes.empty()) return std::nullopt;
  const PhaseTimes& time = *epoch.time;
  const auto per_step = [&](double seconds) { return std::max(0.0, seconds) / static_cast<double>(epoch.steps); };
  Scaling scaling;
  scaling.step_seconds = per_step(time.data + time.forward + time.backward + time.optimizer);
  scaling.window_seconds =
      std::min(scaling.step_seconds, per_step(epoch.exchange ? epoch.exchange->seconds - epoch.exchange->waited_seconds
                                                             : epoch.exchange_window.value_or(time.backward)));
  if (scaling.step_seconds == 0.0) return std::nullopt;
  scaling.costs_are_usual = costs.between_hosts == comm::usual_message_costs().between_hosts;
  scaling.latency = costs.between_hosts.at(0);
  const double of_long = costs.between_hosts.at(2 * kLong) - costs.between_hosts.at(kLong);
  if (of_long <= 0.0) return std::nullopt;
  scaling.bytes_per_second = static_cast<double>(kLong) / of_long;
  scaling.predicted = comm::predict_speed_ups(
      {.seconds = scaling.step_seconds, .window = scaling.window_seconds, .bucket_bytes = bucket_bytes}, kMostRanks,
      costs);
  return scaling;
}

}  // namespace tandem::train
