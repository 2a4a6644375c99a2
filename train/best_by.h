// Which figure of an epoch says that it is the best one.
#pragma once

#include "tandem/train/records.h"

#include <span>
#include <string_view>

namespace tandem::train {

/// Validation figures are there where a part of the training set is held out; test figures of each epoch are not, then.
enum class BestBy : std::uint8_t { test_accuracy, test_loss, train_loss, validation_accuracy, validation_loss };

/// "test_accuracy", "test_loss", ...
std::string_view name_of(BestBy by);
/// All names, in the order of BestBy.
std::span<const std::string_view> best_by_names();
/// The reverse of name_of(). Throws Error for a text that is none of best_by_names().
BestBy parse_best_by(std::string_view text);

/// The figure; NaN where the epoch has none. Example:
///     EpochRecord epoch;
///     epoch.test_loss = 0.5;
///     const double loss = figure_of(epoch, BestBy::test_loss);        // 0.5
///     const double merit = merit_of(epoch, parse_best_by("test_loss"));  // -0.5: larger is better
double figure_of(const EpochRecord& epoch, BestBy by);

/// The figure with such a sign that larger is better.
double merit_of(const EpochRecord& epoch, BestBy by);

}  // namespace tandem::train
