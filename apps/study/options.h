// What the command line of `study` asks for.
#pragma once

#include "apps/study/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::study {

enum class Action : std::uint8_t {
  list,    ///< which studies there are
  plan,    ///< what would be run, and how long that takes
  run,     ///< run what is not done, and make the report
  report,  ///< make the report of what is there
};

struct Options {
  Action action = Action::list;
  bool all = false;                  ///< all studies that there are
  std::vector<std::string> studies;  ///< numbers, names, files
  PlanOptions plan;
  bool extent_is_given = false, seeds_are_given = false;  ///< else a report takes those of the runs
  std::string folder;                                     ///< for runs and the report
  double timeout_seconds = 0.0;  ///< of one run; 0: ten times what it is estimated to take, and at least 10 minutes
};

/// Nothing where help was printed. Throws Error.
std::optional<Options> read_command_line(int argc, const char* const* argv);

}  // namespace tandem::study
