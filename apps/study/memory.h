// Run directories as a study's memory: what is done, what is not, and why.
#pragma once

#include "apps/study/plan.h"
#include "tandem/train/report/run_data.h"

#include <optional>
#include <string>

namespace tandem::study {

enum class RunOutcome : std::uint8_t {
  missing,      ///< it was not begun
  interrupted,  ///< it was begun and has not come to its end
  failed,       ///< its program ended with an error
  diverged,     ///< it came to its end with a loss that is not finite
  finished
};

struct KeptRun {
  RunOutcome outcome = RunOutcome::missing;
  std::string folder;  ///< its path
  std::string reason;  ///< of what is not finished: a sentence, without its point
  std::optional<train::report::RunData> data = {};
  train::report::NumberTable figures = {};  ///< of a bench, in place of `data`
};

/// What the program printed, in the run's folder.
inline constexpr const char* kOutputFile = "output.txt";

/// In the run's folder, where its program ended by itself or by the time limit, and not because the study was stopped:
/// its exit code.
inline constexpr const char* kExitFile = "exit_code.txt";

/// Looks for a run below `runs`: in a folder of its name, or in another of the same settings and seed, of a
/// study or variant that made it first: done, or else failed.
KeptRun find_run(const std::string& runs, const Plan& plan, const PlannedRun& run);

/// Whether there is nothing to do any more: it is finished or diverged.
bool is_done(RunOutcome outcome);

/// What the last line of a program's output that has "error: " says behind that; "" where there is none.
std::string last_error(const std::string& output);

/// The last line with a letter in it; "" where there is none.
std::string last_line(const std::string& output);

}  // namespace tandem::study
