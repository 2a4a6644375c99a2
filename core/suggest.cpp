// Optimal string alignment distance (Damerau-Levenshtein without repeated edits of one place).
#include "tandem/core/suggest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tandem {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

bool is_beginning_of(std::string_view beginning, std::string_view text) {
  return beginning.size() <= text.size() && std::equal(beginning.begin(), beginning.end(), text.begin(),
                                                       [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t kShortestBeginning = 3;
  std::string_view nearest, continued;
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    if (name.size() >= kShortestBeginning && is_beginning_of(name, candidate) &&
        (continued.empty() || candidate.size() < continued.size()))
      continued = candidate;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return std::string(nearest.empty() ? continued : nearest);
}

std::string one_of(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ").append(names[i]);
  return text;
}

std::string unknown_name(std::string_view what, std::string_view name, std::span<const std::string_view> choices) {
  const std::string nearest = nearest_name(name, choices);
  return fmt::format("unknown {} '{}'{} (choices: {})", what, name,
                     nearest.empty() ? "" : fmt::format(": did you mean {}?", nearest), fmt::join(choices, ", "));
}

}  // namespace tandem
