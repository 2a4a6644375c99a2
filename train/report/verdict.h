// Does a run fit too little, too much, or well? Rules on its figures, each with the figures that it was decided by.
// docs/report.md says why they are what they are.
#pragma once

#include "tandem/train/report/run_data.h"

#include <string>
#include <vector>

namespace tandem::train::report {

enum class Fit : std::uint8_t { unknown, diverged, not_learning, overfitting, underfitting, still_learning, good };

struct Verdict {
  Fit fit = Fit::unknown;
  std::string headline;              ///< "Overfitting since epoch 12"
  std::vector<std::string> reasons;  ///< sentences, with numbers
  std::vector<std::string> advice;   ///< sentences
};

/// Bounds of the rules, in the order in which these are tried.
inline constexpr std::size_t kLeastEpochs = 3;  ///< with held-out figures; fewer: unknown
inline constexpr double kChanceFactor = 1.5;    ///< train accuracy below this times chance: not learning
inline constexpr double kRisenLoss = 0.05;      ///< held-out loss so much above its lowest, as a share: overfitting
inline constexpr double kWideGap = 8.0;         ///< train minus held-out accuracy, in points: overfitting
inline constexpr double kFallingLoss =
    0.05;  ///< both losses fell by more in the last fifth, as a share: still learning
inline constexpr double kLowAccuracy = 80.0;   ///< train accuracy below: underfitting
inline constexpr double kStillAccuracy = 1.0;  ///< points of train accuracy in the last fifth; no more: it stands still
inline constexpr double kEndedRate = 0.01;     ///< last learning rate below this share of the highest: it is nearly 0

Verdict judge(const RunData& run);

}  // namespace tandem::train::report
