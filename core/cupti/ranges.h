// Activities of a GPU and the ranges that enqueued them.
#pragma once

#include "tandem/core/cupti/records.h"
#include "tandem/core/timeline.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace tandem::cupti {

/// A range that began while recording.
struct NumberedRange {
  std::string name;
  std::uint64_t outer = 0;  // the number of the range around it; 0: none
  bool is_complete = false;
  double flops = 0.0, bytes = 0.0;
  std::string module = "";
};

using NumberedRanges = std::unordered_map<std::uint64_t, NumberedRange>;

/// Gives `timeline` its device_activities, those of the GPU `device`, and its device_events: each range that is
/// complete, on each stream from the beginning of the first activity that it, or a range in it, enqueued there to the
/// end of the last one. Streams are numbered in the order of CUPTI's numbers.
void add_activities(Timeline& timeline, std::vector<Activity> activities, const NumberedRanges& ranges, int device);

}  // namespace tandem::cupti
