// Which algorithm all-reduces go by, by their size.
// Example:
//     const std::vector<AlgorithmChoice> choices = choices_from_text("recursive-doubling,16384:ring");
//     const std::int64_t limit = choices.back().from_bytes;  // 16384
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// The name that stands for such a choice, made by predicted time (GroupOptions::algorithm).
constexpr std::string_view kByCost = "by-cost";

/// From so many bytes on all-reduces go by this algorithm: a row of all_reduce_algorithms().
struct AlgorithmChoice {
  std::int64_t from_bytes = 0;  ///< of the data
  std::string_view algorithm;   ///< its name

  friend bool operator==(const AlgorithmChoice&, const AlgorithmChoice&) = default;
};

/// Choices in the order of their sizes, the first from 0 bytes on, as one word: "recursive-doubling,16384:ring".
std::string to_text(const std::vector<AlgorithmChoice>& choices);
/// And back. Throws Error for a word that is none, and for an algorithm that there is not.
std::vector<AlgorithmChoice> choices_from_text(std::string_view text);

}  // namespace tandem::comm
