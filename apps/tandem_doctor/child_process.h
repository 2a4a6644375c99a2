// Another program, run to its end or to a time limit.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tandem::apps::doctor {

struct ChildResult {
  int exit_code = 0;         ///< 128 + N where signal N ended it
  bool has_run_out = false;  ///< it was ended by the time limit
  std::string output;        ///< what it printed, on both streams
};

/// Runs words[0], looked up on the PATH, with the others as arguments. At the time limit it is killed with all that it
/// started. Throws Error where it cannot be started.
ChildResult run_child(const std::vector<std::string>& words, std::chrono::milliseconds limit);

}  // namespace tandem::apps::doctor
