// The best epoch of a run, and whether it is time to stop.
#pragma once

#include "tandem/core/named_tensors.h"
#include "tandem/train/best_by.h"
#include "tandem/train/records.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::train {

/// Ends a run that gets no better any more (Prechelt: "Early stopping - but when?", 1998).
struct EarlyStopping {
  std::int64_t patience = 0;  ///< so many epochs without a better figure end the run; 0: none do
  double min_delta = 0.0;     ///< by how much a figure must be better to count as such

  friend bool operator==(const EarlyStopping&, const EarlyStopping&) = default;
};

/// "5" or "5,0.1": PATIENCE[,MIN_DELTA]. Throws Error for another text.
EarlyStopping parse_early_stopping(std::string_view text);
/// What parse_early_stopping() reads.
std::string to_string(const EarlyStopping& stopping);

/// Follows a run's epochs. What counts as better for stopping is held against the last figure that was better by
/// min_delta; the best epoch is that with the best figure, the first of equal ones. An epoch without the figure (NaN)
/// is no better. Example:
///     BestEpoch best(BestBy::test_accuracy, {.patience = 2});
///     for (const double accuracy : {60.0, 70.0, 69.0, 70.0}) {
///       EpochRecord record;
///       record.epoch = best.epochs() + 1;
///       record.test_accuracy = accuracy;
///       best.add(record);
///     }
///     const bool ends = best.should_stop();            // true: two epochs were no better than 70
///     const std::int64_t epoch = best.best()->epoch;  // 2
class BestEpoch {
 public:
  /// Throws Error for options out of range.
  BestEpoch(BestBy by, const EarlyStopping& stopping);

  /// Takes the next epoch's figures in.
  void add(const EpochRecord& epoch);

  /// Whether so many epochs in a row were no better that the run should end.
  bool should_stop() const { return stopping_.patience > 0 && stale_ >= stopping_.patience; }
  /// Nothing before an epoch with such a figure.
  std::optional<BestFigure> best() const;
  /// That were added.
  std::int64_t epochs() const { return epochs_; }
  /// As it was given.
  const EarlyStopping& stopping() const { return stopping_; }

  /// f64 [5]: all that the rest depends on.
  Tensor state() const;
  /// Goes on from a state(). Throws Error for what is none, changing nothing.
  void load_state(const Tensor& state);

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  BestBy by_;
  EarlyStopping stopping_;
  std::int64_t epochs_ = 0, best_epoch_ = 0, stale_ = 0;
  double best_ = kNone, reference_ = kNone;  // larger is better
};

}  // namespace tandem::train
