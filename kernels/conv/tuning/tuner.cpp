// Measuring candidates in turn.
#include "tandem/kernels/conv/tuning/tuner.h"

#include "tandem/core/stream.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace tandem::kernels {

namespace {

constexpr int kTurns = 3;
constexpr double kLeastTurn = 2e-3;  // seconds; short passes are repeated within a turn until it is that long
constexpr int kMostRepeats = 50;

/// Seconds of one run, on the average of `repeats`.
double time_of(const TuningCandidate& candidate, Device device, int repeats) {
  using Clock = std::chrono::steady_clock;
  synchronize(device);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) candidate.run();
  synchronize(device);
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

/// The best turn of each candidate: what disturbs a turn makes it longer, never shorter.
std::vector<double> times_of(std::span<const TuningCandidate> candidates, Device device) {
  std::vector<int> repeats;
  for (const TuningCandidate& candidate : candidates) {
    time_of(candidate, device, 1);  // finds plans and memory
    const double once = time_of(candidate, device, 1);
    repeats.push_back(static_cast<int>(std::clamp(std::ceil(kLeastTurn / once), 1.0, double{kMostRepeats})));
  }
  std::vector<double> best(candidates.size(), HUGE_VAL);
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < candidates.size(); ++i)
      best[i] = std::min(best[i], time_of(candidates[i], device, repeats[i]));
  return best;
}

/// The same names, in any order.
bool same_candidates(const TuningResult& result, std::span<const TuningCandidate> candidates) {
  return result.microseconds.size() == candidates.size() &&
         std::all_of(candidates.begin(), candidates.end(), [&](const TuningCandidate& candidate) {
           return result.microseconds.contains(std::string(candidate.name));
         });
}

}  // namespace

std::string_view name_of(PassKind pass) {
  constexpr std::string_view kNames[] = {"forward",      "backward_input",  "backward_weight",
                                         "forward_pool", "forward_moments", "forward_pool_moments"};
  return kNames[static_cast<int>(pass)];
}

void ConvTuner::set_measuring(bool measuring) {
  const std::lock_guard lock(mutex_);
  measuring_ = measuring;
  ++generation_;
  update_active();
}

std::size_t ConvTuner::choose(const TuningKey& key, Device device, std::span<const TuningCandidate> candidates,
                              std::size_t fallback, const std::function<bool(std::size_t)>& allowed) {
  const auto best_of = [&](const TuningResult& result) {
    const auto time = [&](std::size_t i) { return result.microseconds.at(std::string(candidates[i].name)); };
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (allowed && !allowed(i)) continue;
      if (candidates[i].name == result.chosen) return i;
      if (best == candidates.size() || time(i) < time(best)) best = i;
    }
    return best == candidates.size() ? fallback : best;
  };
  const auto known = [&]() -> std::optional<std::size_t> {
    const std::lock_guard lock(mutex_);
    const auto found = results_.find(key);
    if (found != results_.end() && same_candidates(found->second, candidates)) return best_of(found->second);
    if (!measuring_ || candidates.size() < 2) return fallback;
    return std::nullopt;
  };
  if (const auto best = known()) return *best;
  // One at a time: threads that measure at once slow each other down, and what the first finds is good for all.
  const std::lock_guard one_at_a_time(measuring_mutex_);
  if (const auto best = known()) return *best;
  const std::vector<double> times = times_of(candidates, device);
  const auto fastest = static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  TuningResult result{std::string(candidates[fastest].name), {}};
  for (std::size_t i = 0; i < candidates.size(); ++i)
    result.microseconds[std::string(candidates[i].name)] = times[i] * 1e6;
  const std::lock_guard lock(mutex_);
  results_[key] = result;
  update_active();
  ++measured_;
  return best_of(result);
}

void ConvTuner::add(const TuningKey& key, const TuningResult& result) {
  const std::lock_guard lock(mutex_);
  results_[key] = result;
  ++generation_;
  update_active();
}

std::map<TuningKey, TuningResult> ConvTuner::results() const {
  const std::lock_guard lock(mutex_);
  return results_;
}

std::int64_t ConvTuner::measured() const {
  const std::lock_guard lock(mutex_);
  return measured_;
}

void ConvTuner::clear() {
  const std::lock_guard lock(mutex_);
  results_.clear();
  measuring_ = false;
  measured_ = 0;
  ++generation_;
  update_active();
}

ConvTuner& conv_tuner() {
  static ConvTuner tuner;
  return tuner;
}

}  // namespace tandem::kernels
