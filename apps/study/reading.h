// What the figures say, in sentences.
#pragma once

#include "apps/study/results.h"
#include "tandem/train/plot/ticks.h"

#include <string>
#include <vector>

namespace tandem::study {

/// A value as people read it, with its sign where it is a difference: "+1.20 points", "-3 s".
std::string difference_text(double value, train::plot::Unit unit);

/// "71.20 % ± 0.45", of one seed "71.20 %", of none "–".
std::string sample_text(const Sample& sample, train::plot::Unit unit);

/// One sentence for each measure and each baseline: which points differ clearly from it, which lie within the noise,
/// and which cannot be told from one seed or have no figure. Then the best point by each measure that has a best one,
/// and how sure that is. A pure function of `results`.
std::vector<std::string> reading_of(const Results& results);

/// Whether all runs are finished or diverged, or failed where that may be.
bool is_complete(const Results& results);

/// Runs that failed, diverged or are not done: a sentence for each reason, with the points and seeds that have it.
std::vector<std::string> failures_of(const Results& results);

}  // namespace tandem::study
