// What a check has found, and how it is printed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::apps::doctor {

/// `fault`: something that a run would fail at. `note`: it runs, but slower or with less than it could have.
enum class State : std::uint8_t { ok, note, fault };

std::string_view name_of(State state);

struct Finding {
  State state = State::ok;
  std::string subject;      ///< "ranks", "disk"
  std::string what;         ///< in a line
  std::string remedy = {};  ///< what to do; empty only where all is well
};

/// A line for each finding, its remedy below it, and a line with how many faults and notes there are.
std::string text_of(std::span<const Finding> findings);

/// {"findings": [{"state", "subject", "what", "remedy"}], "faults": 0, "notes": 0}; "remedy" only where there is one.
std::string json_of(std::span<const Finding> findings);

bool has_fault(std::span<const Finding> findings);

}  // namespace tandem::apps::doctor
