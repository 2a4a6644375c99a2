// JSON of files that may come from anywhere. Not for headers that are installed.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace tandem::train {

/// The value of a text. Where that is no JSON it is "discarded", or a parse_error of the library is thrown if `throws`.
/// What is nested deeper than any file of ours is left out: copying, printing and even parsing a value with ordered
/// names (whose tables copy when they grow) call themselves for each level.
inline nlohmann::ordered_json parse_json(std::string_view text, bool throws = false) {
  constexpr int kMostLevels = 64;
  using Json = nlohmann::ordered_json;
  return Json::parse(text, [](int depth, Json::parse_event_t, const Json&) { return depth < kMostLevels; }, throws);
}

}  // namespace tandem::train
