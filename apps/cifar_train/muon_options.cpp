// Numbers between commas.
#include "muon_options.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::apps {
namespace {

/// Nothing where one of them is no number.
template <typename T>
std::vector<T> numbers_in(std::string_view text) {
  std::vector<T> numbers;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::optional<T> number = parse_number<T>(text.substr(0, comma));
    if (!number) return {};
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

optim::NormalizeEvery parse_normalize_every(std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto numbers = numbers_in<std::int64_t>(text);
  const bool fits = numbers.size() == 1 || numbers.size() == 2;
  require(fits && numbers[0] >= 1 && numbers.back() >= 0 && numbers[0] <= kMost && numbers.back() <= kMost,
          "give a number of steps from 1 to {0}, or that and by how much it grows, from 0 to {0}, as in 2,15", kMost);
  return {.first = numbers[0], .more = numbers.size() == 2 ? numbers[1] : 0};
}

std::array<double, 3> parse_newton_schulz(std::string_view text) {
  const auto numbers = numbers_in<double>(text);
  constexpr double kMost = 1000.0;  // as check_newton_schulz()
  require(numbers.size() == 3 && std::ranges::all_of(numbers, [](double number) { return std::abs(number) <= kMost; }),
          "give three numbers from -{0} to {0}, as in 3.4445,-4.775,2.0315", kMost);
  return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace

std::string read_normalize_every(const std::string& text) {
  parse_normalize_every(text);
  return text;
}

std::string read_newton_schulz(const std::string& text) {
  parse_newton_schulz(text);
  return text;
}

optim::OptimizerOptions optimizer_options(const Settings& s, std::int64_t steps) {
  optim::OptimizerOptions options = s.optimizer;
  if (s.normalize_every) {
    options.normalize_every = parse_normalize_every(*s.normalize_every);
    options.normalize_every->steps = std::max<std::int64_t>(steps, 1);
  }
  if (s.newton_schulz) options.newton_schulz = parse_newton_schulz(*s.newton_schulz);
  return options;
}

}  // namespace tandem::apps
