// From a study to its runs.
#pragma once

#include "apps/study/study.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::study {

enum class Extent : std::uint8_t { quick, full };

/// What the command line asks of all studies.
struct PlanOptions {
  Extent extent = Extent::quick;
  int seeds = 3;           ///< runs of each point, with seeds from 1 on
  Settings settings = {};  ///< in place of those of the file, but for what the study varies
};

/// A combination of what is varied.
struct Point {
  Settings coordinates;      ///< dimensions and values, in the study's order
  Settings settings;         ///< all options of its runs but the seed, sorted by name
  std::string key;           ///< key_of() it: the same settings, the same key
  std::string label;         ///< "batch-size 64 · lr 0.1"; of variants the name alone
  bool is_optional = false;  ///< of a variant that is
};

struct PlannedRun {
  std::size_t point = 0;
  int seed = 1;
  std::string folder;  ///< its name: "batch-size-2-batch-size-64-1f0c5a7be812-seed-1"
};

struct Plan {
  Study study;
  std::vector<Point> points;
  std::vector<PlannedRun> runs;  ///< seed by seed, so that a study that is stopped has all points of the first ones
};

Plan make_plan(const Study& study, const PlanOptions& options);

/// 12 hex digits of program and settings.
std::string key_of(const Study& study, const Settings& settings);

/// "KEY-seed-N": what the folders of runs with the same settings and seed end with, in whichever study.
std::string folder_end(const Point& point, int seed);

/// The value of a setting or coordinate; "" where it is not there.
std::string value_of(const Settings& settings, const std::string& name);

/// Sets those of `others`, in place of such of the same names.
void set_all(Settings& settings, const Settings& others);

/// A point's label, or that of a part of its coordinates.
std::string label_of(const Settings& coordinates);

/// Dimensions in the order of the study: of coordinates.
std::vector<std::string> dimensions_of(const Plan& plan);

/// The point that a point is held against: with the baseline's values, where these are not its own already; the study's
/// first one by default. Its own number where there is no such point, or it is the baseline.
std::size_t baseline_of(const Plan& plan, std::size_t point);

/// The words of a run's command line, without run directory: {"cifar_train", "--lr=0.1", "--seed=1"}, behind
/// {"mpirun", "-np", "2"} where it has ranks.
std::vector<std::string> command_of(const std::string& program_file, const Study& study, const Point& point, int seed);

}  // namespace tandem::study
