// Totals of ranges, and memory over time in few samples.
#include "tandem/train/profile/profile_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostOps = 100, kMostSamples = 240;

std::int64_t sum_of(const MemorySample& sample) {
  return std::accumulate(sample.bytes.begin(), sample.bytes.end(), std::int64_t{0});
}

std::vector<MemorySample> in_order(std::vector<MemorySample> samples) {
  std::ranges::stable_sort(samples, {}, &MemorySample::time_ns);
  return samples;
}

/// Of each of kMostSamples intervals the sample with the most bytes, so that no peak is lost.
std::vector<MemorySample> thinned(const std::vector<MemorySample>& samples) {
  std::vector<MemorySample> kept;
  if (samples.empty()) return kept;
  const std::int64_t begin = samples.front().time_ns;
  const std::int64_t interval =
      (samples.back().time_ns - begin) / static_cast<std::int64_t>(kMostSamples) + 1;  // nanoseconds
  std::int64_t last = -1;
  for (const MemorySample& sample : samples) {
    const std::int64_t index = (sample.time_ns - begin) / interval;
    if (index != last) {
      kept.push_back(sample);
    } else if (sum_of(sample) > sum_of(kept.back())) {
      kept.back() = sample;
    }
    last = index;
  }
  return kept;
}

Json memory_of(const Timeline& timeline) {
  const std::vector<MemorySample> samples = thinned(in_order(timeline.memory));
  Json memory = {{"seconds", Json::array()}, {"bytes", Json::object()}};
  for (const MemorySample& sample : samples)
    memory["seconds"].push_back(1e-9 * static_cast<double>(sample.time_ns - samples.front().time_ns));
  for (std::size_t tag = 0; tag < kMemoryTagCount; ++tag) {
    const bool is_used = std::ranges::any_of(samples, [tag](const MemorySample& s) { return s.bytes[tag] > 0; });
    if (!is_used) continue;
    Json& bytes = memory["bytes"][std::string(name_of(static_cast<MemoryTag>(tag)))];
    for (const MemorySample& sample : samples) bytes.push_back(sample.bytes[tag]);
  }
  return memory;
}

/// The names with the most time.
Json kernels_of(const Timeline& timeline) {
  Json kernels = Json::array();
  for (const OpTotals& kernel : activity_totals(timeline.device_activities)) {
    if (kernels.size() == kMostOps) break;
    kernels.push_back(
        {{"name", kernel.name}, {"calls", kernel.count}, {"seconds", kernel.seconds}, {"bytes", kernel.bytes}});
  }
  return kernels;
}

}  // namespace

std::string profile_json(const Timeline& timeline, std::int64_t steps, const MachineLimits& limits) {
  Json json = {{"steps", steps}};
  if (limits.flops_per_second > 0.0) json["flops_per_second"] = limits.flops_per_second;
  if (limits.bytes_per_second > 0.0) json["bytes_per_second"] = limits.bytes_per_second;
  double seconds = 0.0;
  json["ops"] = Json::array();
  const bool has_device = !timeline.device_events.empty();
  for (const OpTotals& op : has_device ? device_op_totals(timeline) : op_totals(timeline.events)) {
    seconds += op.seconds;
    if (json["ops"].size() == kMostOps) continue;
    json["ops"].push_back(
        {{"name", op.name}, {"calls", op.count}, {"seconds", op.seconds}, {"flops", op.flops}, {"bytes", op.bytes}});
  }
  json["seconds"] = seconds;
  if (!timeline.device_times_from.empty()) json["device_times_from"] = timeline.device_times_from;
  if (!timeline.device_activities.empty()) json["kernels"] = kernels_of(timeline);
  json["memory"] = memory_of(timeline);
  json["peak_bytes"] = timeline.peak_bytes;
  json["largest_at_peak"] = Json::array();
  for (const LiveStorage& storage : timeline.largest_at_peak)
    json["largest_at_peak"].push_back({{"bytes", storage.bytes},
                                       {"kind", std::string(name_of(storage.tag))},
                                       {"made_in", storage.made_in},
                                       {"name", storage.name},
                                       {"shape", storage.shape}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem::train
