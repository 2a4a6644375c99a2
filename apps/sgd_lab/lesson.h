// All figures of a lesson, from runs of this program.
#pragma once

#include "apps/sgd_lab/batch_size.h"
#include "apps/sgd_lab/ring.h"
#include "apps/sgd_lab/speed.h"
#include "apps/sgd_lab/timing.h"
#include "apps/sgd_lab/training.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem::sgd_lab {

double norm(const Flat& values);
/// Euclidean, of values of one size.
double distance(const Flat& a, const Flat& b);
/// 16 hexadecimal digits (XXH3).
std::string hash(const Flat& values);

/// The averaged gradient of the first step beside that of one process that has the joined batch.
struct GradientCheck {
  double averaged_norm = 0.0, single_norm = 0.0;
  double largest_difference = 0.0;   ///< of an element
  double relative_difference = 0.0;  ///< of the whole, beside the single-process gradient's norm
};

/// A run without one part. Of figures by step the first is before the first step.
struct BrokenRun {
  PartEntry left_out;
  std::vector<double> losses;              ///< mean over replicas, by step
  std::vector<double> distances;           ///< largest from rank 0's replica to another, by step
  std::optional<int> replicas_differ_at;   ///< after so many steps
  std::optional<int> differs_from_intact;  ///< rank 0's replica from that of the intact run, after so many steps
  std::int64_t examples_seen = 0;          ///< different ones, of all ranks
};

struct Lesson {
  LabOptions options;
  Examples examples;
  Run intact;
  GradientCheck gradient;
  RingLesson ring;
  std::vector<double> losses, distances;  ///< of the intact run, as in BrokenRun
  std::int64_t examples_seen = 0;
  std::vector<BrokenRun> broken;
  double compute_seconds = 0.0, exchange_seconds = 0.0;  ///< medians over ranks and steps of the intact run
  std::vector<TimedSteps> timed;  ///< of 2 ranks and, for Chapter::speed_up, 4 and 8 where there are as many cores
  SpeedUps speed_ups;             ///< for Chapter::speed_up
  BatchLesson batches;            ///< for Chapter::batch_size
};

/// By step.
std::vector<double> mean_losses(const Run& run);

/// What the chapters of the options need; the intact run in any case.
Lesson make_lesson(const LabOptions& options);

}  // namespace tandem::sgd_lab
