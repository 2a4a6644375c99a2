// Reports of runs: a page that shows what a run directory holds, by itself, without a network.
// Example:
//     void show(const std::string& run_dir) {
//       const ReportFiles files = write_report(run_dir);
//       std::printf("%s\n", files.page.c_str());
//     }
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem::train {

/// Why a folder holds no run, "is no folder of a run"; "" where it holds one. Throws Error where that cannot be seen.
std::string reason_of_no_run(const std::string& folder);

/// What write_report() wrote, and what it could not read.
struct ReportFiles {
  std::string page;                   ///< DIR/report.html
  std::string svg;                    ///< DIR/curves.svg
  std::string png;                    ///< DIR/curves.png; empty in a build without cairo
  std::vector<std::string> problems;  ///< what could not be read, and stands in the page, too
  /// How long the run took, with all that was gone on with: as on the page. Nothing where the log does not tell.
  std::optional<double> seconds = {};
};

/// Makes or remakes the report of a run directory from its files: log.jsonl, config.toml, environment.json,
/// evaluation.json, final.safetensors; of a run that goes on or was killed, from what there is. The same files give the
/// same bytes. Throws Error where `run_dir` is none, or a file cannot be written.
ReportFiles write_report(const std::string& run_dir);

/// Writes a page that holds several runs against each other: settings that differ, curves, results. Runs that differ by
/// their seed only, and by settings without effect on the result, are pooled: means, and bands of one standard
/// deviation; those of one seed count once. A folder that is named twice is one run. Returns the results as a table for
/// a terminal of so many columns, where that can be; 0: of any width. Throws Error as write_report() does;
/// with `problem`, a page that cannot be written is told there, and the table is returned all the same.
std::string write_comparison(const std::vector<std::string>& run_dirs, const std::string& path, int columns = 0,
                             std::string* problem = nullptr);

}  // namespace tandem::train
