// Better by how much, and since when.
#include "tandem/train/best_epoch.h"

#include "tandem/core/describe.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::train {
namespace {

constexpr std::int64_t kMostPatience = 1000000;

bool is_sound(const EarlyStopping& stopping) {
  return stopping.patience >= 0 && stopping.patience <= kMostPatience && stopping.min_delta >= 0.0 &&
         std::isfinite(stopping.min_delta);
}

}  // namespace

EarlyStopping parse_early_stopping(std::string_view text) {
  const std::size_t comma = text.find(',');
  const std::optional<std::int64_t> patience = parse_number<std::int64_t>(text.substr(0, comma));
  const std::optional<double> delta =
      comma == std::string_view::npos ? std::optional(0.0) : parse_number<double>(text.substr(comma + 1));
  const EarlyStopping stopping{patience.value_or(-1), delta.value_or(-1.0)};
  require(is_sound(stopping), "'{}' is not PATIENCE[,MIN_DELTA]: epochs up to {}, and a number of at least 0 (5,0.1)",
          text, kMostPatience);
  return stopping;
}

std::string to_string(const EarlyStopping& stopping) {
  return stopping.min_delta > 0.0 ? fmt::format("{},{}", stopping.patience, stopping.min_delta)
                                  : fmt::format("{}", stopping.patience);
}

BestEpoch::BestEpoch(BestBy by, const EarlyStopping& stopping) : by_(by), stopping_(stopping) {
  require(is_sound(stopping), "early stopping: patience {} and min_delta {} must be 0 or more", stopping.patience,
          stopping.min_delta);
}

void BestEpoch::add(const EpochRecord& epoch) {
  const double merit = merit_of(epoch, by_);
  ++epochs_;
  ++stale_;
  if (merit > best_) {
    best_ = merit;
    best_epoch_ = epoch.epoch;
  }
  // From nothing, any figure is better.
  if (merit > (reference_ == kNone ? kNone : reference_ + stopping_.min_delta)) {
    reference_ = merit;
    stale_ = 0;
  }
}

std::optional<BestFigure> BestEpoch::best() const {
  if (best_epoch_ == 0) return std::nullopt;
  const bool is_accuracy = by_ == BestBy::test_accuracy || by_ == BestBy::validation_accuracy;
  return BestFigure{std::string(name_of(by_)), best_epoch_, is_accuracy ? best_ : -best_};
}

Tensor BestEpoch::state() const {
  return Tensor::from<double>(std::vector<double>{static_cast<double>(epochs_), static_cast<double>(best_epoch_),
                                                  static_cast<double>(stale_), best_, reference_},
                              {5});
}

void BestEpoch::load_state(const Tensor& state) {
  require(state.defined() && state.dtype() == DType::f64 && state.shape() == Shape({5}),
          "trainer: the best epoch of the state must be f64[5], got {}", describe(state));
  const std::vector<double> values = state.to_vector<double>();
  const auto is_count = [](double value) { return value >= 0.0 && value <= 1e15 && value == std::floor(value); };
  require(std::all_of(values.begin(), values.begin() + 3, is_count) && values[2] <= values[0] &&
              !std::isnan(values[3]) && !std::isnan(values[4]),
          "trainer: the best epoch of the state makes no sense: {} epochs, the best {}, {} without a better one",
          values[0], values[1], values[2]);
  epochs_ = static_cast<std::int64_t>(values[0]);
  best_epoch_ = static_cast<std::int64_t>(values[1]);
  stale_ = static_cast<std::int64_t>(values[2]);
  best_ = values[3];
  reference_ = values[4];
}

}  // namespace tandem::train
