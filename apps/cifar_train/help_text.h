// The --help page: groups, defaults and units.
#pragma once

#include "option_table.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem::apps {

struct HelpPage {
  std::string program;
  std::string summary;                                        ///< one or two sentences
  std::vector<std::pair<std::string, std::string>> examples;  ///< command lines, and what they are for
};

/// In lines of at most `columns`. Defaults are the values the table holds now, so ask before parsing.
std::string help_text(const HelpPage& page, const OptionTable& table, int columns);

}  // namespace tandem::apps
