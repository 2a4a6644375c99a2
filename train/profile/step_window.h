// Which steps of a run are profiled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::train {

/// Steps first to last, both included, counted from 1 over all epochs.
struct StepWindow {
  std::int64_t first = 1, last = 1;  ///< both included

  friend bool operator==(const StepWindow&, const StepWindow&) = default;
};

/// "steps=10:15". Throws Error, which says what is wrong, for other texts, for steps below 1 or that begin behind their
/// end, and for more than 1000 of them.
/// Example:
///     const StepWindow window = parse_step_window("steps=10:15");
///     const std::int64_t last = window.last;        // 15
///     const std::string text = to_string(window);  // "steps=10:15"
StepWindow parse_step_window(std::string_view text);

/// What parse_step_window() reads.
std::string to_string(const StepWindow& window);

}  // namespace tandem::train
