// From activities to ranges, and outwards.
#include "tandem/core/cupti/ranges.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem::cupti {

namespace {

/// From when to when.
struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// By range and stream: outer ranges have lower numbers than those inside them.
using Spans = std::map<std::pair<std::uint64_t, int>, Span>;

void extend(Spans& spans, std::uint64_t range, const DeviceActivity& activity) {
  const Span one{activity.begin_ns, activity.begin_ns + activity.duration_ns};
  const auto [found, is_new] = spans.try_emplace({range, activity.stream}, one);
  if (is_new) return;
  Span& span = found->second;
  span = {std::min(span.begin_ns, one.begin_ns), std::max(span.end_ns, one.end_ns)};
}

/// A stream's number by its context and CUPTI's number of it.
std::map<std::pair<std::uint32_t, std::uint32_t>, int> stream_numbers(const std::vector<Activity>& activities) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> numbers;
  for (const Activity& activity : activities) numbers[{activity.context, activity.stream}] = 0;
  int next = 0;
  for (auto& [stream, number] : numbers) number = next++;
  return numbers;
}

}  // namespace

void add_activities(Timeline& timeline, std::vector<Activity> activities, const NumberedRanges& ranges, int device) {
  std::erase_if(activities,
                [&](const Activity& activity) { return activity.device != static_cast<std::uint32_t>(device); });
  const auto streams = stream_numbers(activities);
  Spans spans;
  for (Activity& activity : activities) {
    activity.what.stream = streams.at({activity.context, activity.stream});
    auto range = ranges.find(activity.range);
    if (range != ranges.end()) activity.what.op = range->second.name;
    for (; range != ranges.end(); range = ranges.find(range->second.outer)) extend(spans, range->first, activity.what);
    timeline.device_activities.push_back(std::move(activity.what));
  }
  for (const auto& [place, span] : spans) {
    const NumberedRange& range = ranges.at(place.first);
    if (!range.is_complete) continue;
    timeline.device_events.push_back(
        {range.name, place.second, span.begin_ns, span.end_ns - span.begin_ns, range.flops, range.bytes, range.module});
  }
}

}  // namespace tandem::cupti
