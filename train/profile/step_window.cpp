// Reading "steps=10:15".
#include "tandem/train/profile/step_window.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/core.h>

namespace tandem::train {

StepWindow parse_step_window(std::string_view text) {
  constexpr std::string_view kStart = "steps=";
  const std::string_view range = text.starts_with(kStart) ? text.substr(kStart.size()) : "";
  const std::size_t colon = range.find(':');
  const auto first = parse_number<std::int64_t>(range.substr(0, colon));
  const auto last = parse_number<std::int64_t>(colon == range.npos ? "" : range.substr(colon + 1));
  require(first && last, "give the first and the last step, as in steps=10:15");
  require(*first >= 1 && *last >= *first, "steps count from 1, and the last one cannot be before the first");
  constexpr std::int64_t kMost = 1000;
  require(*last - *first < kMost, "at most {} steps: a trace takes about five megabytes of each rank for a hundred",
          kMost);
  return {*first, *last};
}

std::string to_string(const StepWindow& window) { return fmt::format("steps={}:{}", window.first, window.last); }

}  // namespace tandem::train
