// The lesson by larger batches, of as many examples in all.
#pragma once

#include "apps/sgd_lab/training.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::sgd_lab {

struct BatchRun {
  int factor = 1;  ///< of the batch of a rank
  double learning_rate = 0.0;
  std::int64_t batch = 0;        ///< of all ranks
  std::vector<double> examples;  ///< that all ranks have seen, by step; in each epoch they count again
  std::vector<double> losses;    ///< mean over replicas, by step
};

struct BatchLesson {
  /// By rising factor from 1 on: one learning rate, or `factor` times as much. None is larger than the steps are many.
  /// All see the same examples: they take as many of the options' steps as the largest factor divides.
  std::vector<BatchRun> same, scaled;
};

BatchLesson make_batch_lesson(const LabOptions& options, const Examples& examples);

/// How many examples each run has seen.
std::string examples_text(const BatchLesson& lesson);

/// What the largest batch loses by the learning rate of the smallest, and has back by a scaled one.
std::string batch_text(const BatchLesson& lesson);

}  // namespace tandem::sgd_lab
