// The --help page: groups, defaults and units, at most 80 columns.
#pragma once

#include "option_table.h"

#include <string>
#include <vector>

namespace tandem::apps {

struct HelpPage {
  std::string program;
  std::string summary;                ///< one or two sentences
  std::vector<std::string> examples;  ///< command lines with a `# comment`
};

/// Defaults are the values the table holds now, so ask before parsing.
std::string help_text(const HelpPage& page, const OptionTable& table);

}  // namespace tandem::apps
