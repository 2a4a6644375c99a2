// How many steps in a row a loss scale has skipped.
#pragma once

#include "tandem/optim/finite_check.h"

#include <cstdint>

namespace tandem::train {

/// Counts steps that were not taken, from the last one back to one that was. Where a GPU has not answered yet for the
/// last one, only those wait to whom it matters. Example:
///     #include <limits>
///     #include <vector>
///     const std::vector<Tensor> good{Tensor::full({3}, 1.0)};
///     const std::vector<Tensor> bad{Tensor::full({3}, std::numeric_limits<double>::infinity())};
///     SkippedInARow skipped;
///     skipped.add(optim::FiniteCheck(good));
///     skipped.add(optim::FiniteCheck(bad));
///     skipped.add(optim::FiniteCheck(bad));
///     const std::int64_t count = skipped.count();  // 2
///     const bool reaches = skipped.reaches(2);     // true
class SkippedInARow {
 public:
  /// The next step.
  void add(const optim::FiniteCheck& taken) {
    settle();
    last_ = taken;
    has_last_ = true;
  }
  /// Waits for the answer of the last step.
  std::int64_t count() const {
    settle();
    return before_last_;
  }
  /// Whether count() >= limit. Waits where it depends on the last step.
  bool reaches(std::int64_t limit) const { return before_last_ + (has_last_ ? 1 : 0) >= limit && count() >= limit; }
  /// As if no step had been skipped.
  void reset() { *this = {}; }

 private:
  void settle() const {
    if (!has_last_) return;
    before_last_ = last_.passed() ? 0 : before_last_ + 1;
    has_last_ = false;
  }

  // Mutable, as whoever asks first settles them.
  mutable std::int64_t before_last_ = 0;
  mutable bool has_last_ = false;
  optim::FiniteCheck last_;
};

}  // namespace tandem::train
