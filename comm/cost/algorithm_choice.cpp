// Choices as text.
#include "tandem/comm/cost/algorithm_choice.h"

#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::comm {

std::string to_text(const std::vector<AlgorithmChoice>& choices) {
  std::string text;
  for (const auto& [bytes, algorithm] : choices)
    text += text.empty() ? std::string(algorithm) : fmt::format(",{}:{}", bytes, algorithm);
  return text;
}

std::vector<AlgorithmChoice> choices_from_text(std::string_view text) {
  std::vector<AlgorithmChoice> choices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    std::int64_t bytes = 0;
    if (!choices.empty()) {
      const std::size_t colon = part.find(':');
      bytes = parse_number<std::int64_t>(part.substr(0, colon)).value_or(-1);
      require(colon != part.npos && bytes > choices.back().from_bytes,
              "'{}' is no choice of algorithms: expected NAME,BYTES:NAME,... with ascending sizes", text);
      part.remove_prefix(colon + 1);
    }
    choices.push_back({bytes, all_reduce_algorithm(part).name});
    begin = end + 1;
  }
  return choices;
}

}  // namespace tandem::comm
