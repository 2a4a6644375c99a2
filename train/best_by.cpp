// Names, figures and their signs.
#include "tandem/train/best_by.h"

#include "tandem/core/error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::train {
namespace {

constexpr std::array<std::string_view, 5> kNames{"test_accuracy", "test_loss", "train_loss", "validation_accuracy",
                                                 "validation_loss"};

}  // namespace

std::string_view name_of(BestBy by) { return kNames.at(static_cast<std::size_t>(by)); }

std::span<const std::string_view> best_by_names() { return kNames; }

BestBy parse_best_by(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  require(found != kNames.end(), "best_by: '{}' is none of {}", text, fmt::join(kNames, ", "));
  return static_cast<BestBy>(found - kNames.begin());
}

double figure_of(const EpochRecord& epoch, BestBy by) {
  switch (by) {
    case BestBy::test_accuracy:
      return epoch.test_accuracy;
    case BestBy::test_loss:
      return epoch.test_loss;
    case BestBy::train_loss:
      return epoch.train_loss;
    case BestBy::validation_accuracy:
      return epoch.validation_accuracy;
    case BestBy::validation_loss:
      return epoch.validation_loss;
  }
  return std::nan("");
}

double merit_of(const EpochRecord& epoch, BestBy by) {
  const bool is_accuracy = by == BestBy::test_accuracy || by == BestBy::validation_accuracy;
  return is_accuracy ? figure_of(epoch, by) : -figure_of(epoch, by);
}

}  // namespace tandem::train
