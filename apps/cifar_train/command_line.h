// From argv and a config file to filled-in options.
#pragma once

#include "config_file.h"
#include "option_table.h"

namespace tandem::apps {

/// What the user asked the program to do.
enum class Request { run, help, version, print_config };

struct CommandLine {
  Request request;
  std::vector<std::string> notes;  ///< what of the config file is left out, and why: a line each
};

/// Reads the command line, then the file named by --config for whatever the command line left open, then that of
/// --recipe for the rest. Throws Error with one line that names the option, and the nearest one where it is unknown.
/// `exclusive` lists options of which one replaces the other: given together in one place they are an error; one on the
/// command line sets the other's line in the config file aside. So does a choice on the command line with what the file
/// says of another choice (settle_choosers).
CommandLine parse_command_line(int argc, const char* const* argv, OptionTable& table,
                               const std::pair<std::string, std::string>& exclusive, ConfigReader& configs);

}  // namespace tandem::apps
