// The lines of a run that people read: header, one per epoch, summary.
#pragma once

#include "tandem/train/evaluation_report.h"
#include "tandem/train/records.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train {

/// "1.5 GiB", "312 MiB"
std::string format_bytes(std::int64_t bytes);

/// What is about to be trained, on what, by whom: a few lines, each with its line end.
std::string header_text(const RunRecord& run);

/// One finished epoch of `epochs`, in columns that stay aligned from epoch to epoch; no line end. What was not counted
/// or not tested is left out, and so is the number of epochs where it is 0.
std::string epoch_text(const EpochRecord& epoch, std::int64_t epochs = 0);

/// A line for each class of an evaluation, in columns, with its line end: "  airplane    81.20% of 1,000".
std::string per_class_text(const EvaluationReport& report, const std::vector<std::string>& classes);

/// Where a run left things, and how long it took where that is more than this process.
struct ResultFiles {
  std::string folder = {};  ///< of the run; or empty
  /// What (8 letters at most), and the paths of that; those in `folder` are told without it. Lines without paths are
  /// left out.
  std::vector<std::pair<std::string, std::vector<std::string>>> lines = {};
  std::string report = {};   ///< told in full, or left out where it is empty; the same below
  std::string picture = {};  ///< of its curves
  /// Of a run that was gone on with: the time of all its sessions, or none where only that of this one is known.
  bool is_resumed = false;
  std::optional<double> seconds = {};
  std::int64_t steps = 0;  ///< of a run that ended within an epoch: told in place of its epochs; 0: it did not
};

/// The end of a run's output: where its files are, then `result`, a line that says how it ended, and the picture's
/// path.
std::string closing_text(const std::string& result, const ResultFiles& files);

/// How it ended: the best epoch, memory, where its files are; the last two lines are accuracy and picture. Lines take
/// at most 80 columns, but for long paths.
std::string summary_text(const ResultRecord& result, const ResultFiles& files);

}  // namespace tandem::train
